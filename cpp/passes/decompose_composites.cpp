// Decomposes composite ops where a fused loop can include the parts. The op's own kernel would
// separate the nodes that are fused with it. The gradient, which is that of the decomposition,
// would compute the parts once more.
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {

Graph decompose_composites(Graph graph) {
  const auto expands = [](const Node& node) { return node.op->has(kComposite); };
  if (std::ranges::none_of(graph.nodes, expands)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    if (!expands(node)) {
      rewrite.copy(node);
      continue;
    }
    const NodeId first = rewrite.to().nodes.next_id();
    const Values inputs = rewrite(node.inputs);
    const Values made = node.op->decompose({rewrite.builder(), node.attrs, inputs, {}, {}});
    for (NodeId n = first; n < rewrite.to().nodes.next_id(); ++n) {
      rewrite.to().nodes[n].location = node.location;
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
      rewrite.to().values[made[i]].placement = graph.placement(node.outputs[i]);
      rewrite.replace(node.outputs[i], made[i]);
    }
  }
  return rewrite.finish();
}

}  // namespace samegrad
