// Iteration space of a fused loop: elements, or rows along the last axes, and the broadcast kind of
// each value.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "ops/fused.h"

namespace samegrad {

// The elements of a shape with its example axis; `axes` of them at the end make a row, 0: any.
struct RowSpace {
  Shape shape;
  ExampleAxis batch;
  int axes = 0;
};

// True if the value is one number, equal for all examples.
bool is_scalar(const Graph& graph, Value value);

// The space that a node asks for; none if it is not made row by row. Values that are `spread` count
// as numbers.
std::optional<RowSpace> space_of(const Graph& graph, const PerValue<bool>& spread,
                                 const Node& node);
// The space of both, as far as shapes tell.
std::optional<RowSpace> joined(const RowSpace& a, const RowSpace& b);

// The role of a result of this type in the space: full, or one for each row.
std::optional<FusedRole> role_of_result(const RowSpace& space, const ValueType& type);
// The role of the node's result in the space: as above, or a row for each example.
std::optional<FusedRole> role_of_node(const Graph& graph, const RowSpace& space, const Node& node);
// The number of last axes that remain if a reduction reduces all others but the examples' axis, for
// examples of several rows; 0 otherwise.
int kept_axes(const ValueType& x, const Node& reduction);
// The role of operand k for a node whose result has a role.
std::optional<FusedRole> role_of_operand(const Graph& graph, const PerValue<bool>& spread,
                                         const RowSpace& space, const Node& node, std::size_t k);

// Elements of a row.
std::int64_t columns_of(const RowSpace& space);

}  // namespace samegrad
