// Iteration space of a fused loop: elements, or rows along the last axes, and the broadcast kind of
// each value.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "ops/fused.h"

namespace samegrad {

// The elements of a shape with its example axis; `axes` of them at the end make a row, 0: any.
struct IterationSpace {
  Shape shape;
  ExampleAxis batch;
  int axes = 0;
};

// True if the value is one number, equal for all examples.
bool is_scalar(const Graph& graph, Value value);

// The space that a node asks for; none if it is not made row by row. Values that are `spread` count
// as numbers.
std::optional<IterationSpace> space_of(const Graph& graph, const PerValue<bool>& splat,
                                       const Node& node);
// The space of both, as far as shapes tell.
std::optional<IterationSpace> joined(const IterationSpace& a, const IterationSpace& b);

// The role of a result of this type in the space: full, or one for each row.
std::optional<BroadcastKind> broadcast_of_result(const IterationSpace& space,
                                                 const ValueType& type);
// The role of the node's result in the space: as above, or a row for each example.
std::optional<BroadcastKind> broadcast_of_node(const Graph& graph, const IterationSpace& space,
                                               const Node& node);
// The number of last axes that remain if a reduction reduces all others but the examples' axis, for
// examples of several rows; 0 otherwise.
int kept_axes(const ValueType& x, const Node& reduction);
// The role of operand k for a node whose result has a role.
std::optional<BroadcastKind> broadcast_of_operand(const Graph& graph, const PerValue<bool>& splat,
                                                  const IterationSpace& space, const Node& node,
                                                  std::size_t k);

// Elements of a row.
std::int64_t columns_of(const IterationSpace& space);

}  // namespace samegrad
