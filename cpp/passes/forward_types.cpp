// Who asks an elementwise result for nothing but its type asks an operand of the same type: a fused
// loop need not store the result for it.
#include <algorithm>

#include "passes/loop_stages.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

Value first_of_type(const Graph& graph, Value value) {
  for (;;) {
    const Node* node = graph.producer(value);
    if (!node || !node->op->has(kElementwise)) return value;
    const auto alike = std::ranges::find_if(
        node->inputs, [&](Value input) { return graph.type(input) == graph.type(value); });
    if (alike == node->inputs.end()) return value;
    value = *alike;
  }
}

}  // namespace

Graph forward_types(Graph graph) {
  const auto forwards = [&](const Node& node) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value input = node.inputs[k];
      if (!node.op->reads(k) && first_of_type(graph, input) != input) return true;
    }
    return false;
  };
  if (std::ranges::none_of(graph.nodes, forwards)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    Values inputs;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value input = node.inputs[k];
      inputs.push_back(rewrite(node.op->reads(k) ? input : first_of_type(graph, input)));
    }
    rewrite.copy(node, std::move(inputs));
  }
  return rewrite.finish();
}

}  // namespace samegrad
