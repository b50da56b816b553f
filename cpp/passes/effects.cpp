// Programs that run once more for their values only.
#include "ir/regions.h"
#include "ops/gradient_rule.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

PerNode<bool> needed_nodes(const Graph& graph) {
  PerValue<bool> wanted(graph.values.size(), false);
  PerNode<bool> needed(graph.nodes.size(), false);
  for (Value output : graph.outputs) wanted[output] = true;
  for (NodeId i : graph.nodes.ids().reversed()) {
    const Node& node = graph.nodes[i];
    for (Value output : node.outputs) needed[i] = needed[i] || wanted[output];
    const auto* rule = node.attrs.get_if<GradientRuleAttrs>();
    for (std::int64_t r = 0; rule && r < rule->results; ++r) {
      needed[i] = needed[i] || wanted[node.inputs[std::size_t(r)]];
    }
    if (!needed[i]) continue;
    for (Value input : graph.nodes[i].inputs) wanted[input] = true;
  }
  return needed;
}

}  // namespace

Node without_effects(const Node& node) {
  Node pure = node;
  if (holds(node, kSideEffect)) {
    change_regions(pure, [](Graph& region) { region = without_effects(region); });
  }
  return pure;
}

Graph without_effects(const Graph& graph) {
  const PerNode<bool> needed = needed_nodes(graph);
  Rewriter rewrite(graph);
  PerNode<NodeId> place(1, NodeId(0));  // of each node, and the end
  for (NodeId i : needed.ids()) {
    if (needed[i]) rewrite.copy(without_effects(graph.nodes[i]));
    place.push_back(rewrite.to().nodes.next_id());
  }
  Graph& pure = rewrite.to();
  pure.outputs = rewrite(graph.outputs);
  for (CallRange call : graph.calls) {
    call.begin = place[call.begin];
    call.end = place[call.end];
    pure.calls.push_back(call);
  }
  for (const StateWrite& read : graph.rereads) {
    const Value value = rewrite(read.value);
    if (value != kNoValue) pure.rereads.push_back({read.variable, value});
  }
  return std::move(pure);
}

}  // namespace samegrad
