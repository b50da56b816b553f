#include "passes/rewrite.h"

#include <algorithm>

namespace samegrad {

Rewriter::Rewriter(const Graph& from)
    : from_(from), builder_(to_), map_(from.values.size(), kNoValue) {
  to_.constants = from.constants;
  copy_outside(nullptr);
}

Rewriter::Rewriter(const Graph& from, const PerValue<bool>& needed)
    : from_(from), builder_(to_), map_(from.values.size(), kNoValue) {
  copy_outside(&needed);
}

// Everything but the nodes.
void Rewriter::copy_outside(const PerValue<bool>* needed) {
  to_.arguments = from_.arguments;
  to_.variables = from_.variables;
  to_.symbols = from_.symbols;
  to_.locations = from_.locations;
  to_.replicas = from_.replicas;
  to_.nodes.reserve(from_.nodes.size());
  for (Value v : from_.values.ids()) {
    ValueInfo info = from_.values[v];
    if (info.source == Source::kNode) continue;
    if (info.source == Source::kConstant && needed) {
      if (!(*needed)[v]) continue;
      info.index = to_.constants.push_back(from_.constants[info.constant()]).number();
    }
    map_[v] = to_.values.push_back(info);
  }
}

Values Rewriter::operator()(const std::vector<Value>& old) const {
  Values fresh;
  fresh.reserve(old.size());
  for (Value value : old) fresh.push_back(map_[value]);
  return fresh;
}

void Rewriter::copy(const Node& node, Values inputs) {
  // Not through the shape rule: it would make new symbols for old ones.
  Node fresh{node.op,       std::move(inputs), {}, node.attrs, node.regions, node.locality,
             node.location, node.derivative};
  fresh.outputs.reserve(node.outputs.size());
  for (Value output : node.outputs) {
    ValueInfo info = from_.values[output];
    info.index = to_.nodes.next_id().number();
    // An alias has the memory of its operand, which a pass may have made one for all replicas.
    if (node.op->has(kAliases) && !to_.varying(fresh.inputs[0])) {
      info.placement = Placement::kReplicated;
    }
    fresh.outputs.push_back(to_.values.push_back(info));
    replace(output, fresh.outputs.back());
  }
  to_.nodes.push_back(std::move(fresh));
}

Graph Rewriter::finish() {
  to_.outputs = (*this)(from_.outputs);
  for (const StateWrite& write : from_.writes)
    to_.writes.push_back({write.variable, (*this)(write.value)});
  return std::move(to_);
}

bool is_read(const Graph& graph, Value value) {
  if (std::ranges::find(graph.outputs, value) != graph.outputs.end()) return true;
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] == value && node.op->reads(k)) return true;
    }
    return false;
  });
}

PerValue<int> count_uses(const Graph& graph) {
  PerValue<int> uses(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (Value input : node.inputs) ++uses[input];
  }
  for (Value output : graph.outputs) ++uses[output];
  for (const StateWrite& write : graph.writes) ++uses[write.value];
  return uses;
}

}  // namespace samegrad
