// An elementwise operation that broadcasts leading axes of size 1 reads what they were added to: a
// bias that was reshaped to the rank of its images is a bias, as that of its size.
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

// True if `shown` is the shape with axes of size 1 before it.
bool adds_leading_ones(const Shape& shape, const Shape& shown) {
  const int added = shown.rank() - shape.rank();
  for (int axis = 0; axis < shown.rank(); ++axis) {
    if (shown[axis] != (axis < added ? 1 : shape[axis - added])) return false;
  }
  return added > 0;
}

// The value without the leading axes of size 1 that it only shows.
Value without_leading_ones(const Graph& graph, Value value) {
  Value found = value;
  for (const Node* node = graph.producer(value); node && node->op->has(kAliases);
       node = graph.producer(node->inputs[0])) {
    const Value source = node->inputs[0];
    const ValueType &from = graph.type(source), &to = graph.type(value);
    if (from.batched() || to.batched() || from.shape.symbolic()) break;
    if (adds_leading_ones(from.shape, to.shape)) found = source;
  }
  return found;
}

// The operands to read instead; those that there are where the result would have fewer axes.
Values operands_of(const Graph& graph, const Node& node) {
  if (!node.op->has(kElementwise)) return node.inputs;
  Values inputs;
  int rank = 0;
  for (Value input : node.inputs) {
    inputs.push_back(without_leading_ones(graph, input));
    rank = std::max(rank, graph.type(inputs.back()).shape.rank());
  }
  return rank == graph.type(node.outputs[0]).shape.rank() ? inputs : node.inputs;
}

}  // namespace

Graph fold_broadcasts(Graph graph) {
  const auto forwards = [&](const Node& node) { return operands_of(graph, node) != node.inputs; };
  if (std::ranges::none_of(graph.nodes, forwards)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) rewrite.copy(node, rewrite(operands_of(graph, node)));
  return rewrite.finish();
}

}  // namespace samegrad
