#include "train/copy_nodes.h"

#include "ir/symbols.h"

namespace samegrad {

void copy_nodes(const Graph& from, NodeId begin, Graph& to, SourceLines& lines,
                PerValue<Value>& map, const std::function<std::int32_t(std::int32_t)>& run_of) {
  SymbolMap symbols(from.symbols, to.symbols);
  for (Value v : from.values.ids()) {
    const ValueType& type = from.values[v].type;
    if (map[v] == kNoValue || !type.batched() || !to.type(map[v]).batched()) continue;
    symbols.bind(type.batch.symbol, to.type(map[v]).batch.symbol);
  }
  PerNode<NodeId> copies(from.nodes.size(), kNoNode);
  for (NodeId n : IdRange<NodeId>(begin, from.nodes.next_id())) {
    const Node& original = from.nodes[n];
    if (!original.outputs.empty() && map[original.outputs[0]] != kNoValue) continue;
    Node node = symbols(original);
    for (Value& input : node.inputs) input = map[input];
    for (Value& output : node.outputs) {
      ValueInfo info = from.values[output];
      info.type = symbols(info.type);
      info.index = to.nodes.next_id().number();
      map[output] = to.values.push_back(info);
      output = map[output];
    }
    if (node.location >= 0) {
      node.location = lines.index_of(from.locations[std::size_t(node.location)]);
    }
    copies[n] = to.nodes.push_back(std::move(node));
  }
  for (const CallRange& call : from.calls) {
    if (!call.end.exists() || call.begin < begin || call.begin == call.end) continue;
    const NodeId first = copies[call.begin], last = copies[call.end - 1];
    if (first.exists() && last.exists()) {
      to.calls.push_back({first, last + 1, run_of(call.run)});
    }
  }
}

}  // namespace samegrad
