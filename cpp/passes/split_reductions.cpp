// Split reductions: the sum over the elements of each example becomes a node of its own, bitwise
// identical to the tree: the rows of an example are reduced by the same kernel either way
// (ops/reduce_kernel.cpp).
#include <algorithm>

#include "base/thresholds.h"
#include "ops/attributes.h"
#include "passes/iteration_space.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

bool is_elementwise(const Node* node) {
  if (!node || node->locality != Locality::kPerExample) return false;
  switch (node->op->block.kind) {
    case BlockFn::kUnary:
    case BlockFn::kBinary:
    case BlockFn::kSelect:
    case BlockFn::kCast:
      return true;
    default:
      return false;
  }
}

// The number of last axes that are kept; 0: the reduction stays as it is.
int axes_to_keep(const Graph& graph, const Node& node) {
  if (node.locality != Locality::kBatchReduction || node.op->block.kind != BlockFn::kReduce)
    return 0;
  if (!is_elementwise(graph.producer(node.inputs[0]))) return 0;
  const ValueType& x = graph.type(node.inputs[0]);
  const int kept = kept_axes(x, node);
  // One number has an order of its own, and a large result is made after the loop.
  const std::int64_t size = example_size(graph.type(node.outputs[0]));
  const std::int64_t bytes = size * std::int64_t(size_of(x.dtype));
  const bool fits = size > 1 && bytes <= thresholds().deferred_bytes;
  return fits && size <= thresholds().fused_row ? kept : 0;
}

}  // namespace

Graph split_tree_reductions(Graph graph) {
  const auto splits = [&](const Node& node) { return axes_to_keep(graph, node) > 0; };
  if (std::ranges::none_of(graph.nodes, splits)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    const int kept = axes_to_keep(graph, node);
    if (kept == 0) {
      rewrite.copy(node);
      continue;
    }
    ReduceAttrs attrs{{}, true};
    for (int axis = 1; axis < graph.type(node.inputs[0]).shape.rank() - kept; ++axis) {
      attrs.axes.push_back(axis);
    }
    const Value x = rewrite(node.inputs[0]);
    const Value each = rewrite.builder().apply(*node.op, std::vector{x}, attrs)[0];
    rewrite.to().nodes.back().location = node.location;
    rewrite.copy(node, {each});
  }
  return rewrite.finish();
}

}  // namespace samegrad
