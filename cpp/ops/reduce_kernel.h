// How the elements of a reduction are put together, in which order.
#pragma once

#include "kernels/table.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// One bit per axis; ValueError if an axis is out of range or named twice.
std::uint32_t axes_mask(std::string_view who, const std::vector<std::int64_t>& axes, int rank);

// Neighbouring axes that are all reduced or all kept, as one. Nothing else is merged: what is 1 in
// one tile (a count of examples) may be larger in the next, and the order must be the same.
struct AxisGroups {
  int count = 0;
  std::int64_t size[kMaxRank];
  bool reduced[kMaxRank];

  AxisGroups() = default;
  AxisGroups(const Shape& shape, std::uint32_t reduced_axes);
  void push(std::int64_t dim, bool is_reduced);
};

// Reduces the groups from the innermost outwards: the last one of all by lanes (row_reduce), others
// in order (column_reduce).
void reduce_groups(ReduceFn fn, DType dtype, AxisGroups groups, const void* x, void* y,
                   Scratch& scratch);

// The tree over examples, which lie on axis 0 of x: each row is reduced as above to what the result
// has; then the rows of a leaf are added in order and leaves are joined. A result of one element
// takes each example by row_reduce and has leaves of one example.
void reduce_tree(ReduceFn fn, BinaryFn join, const View& x, std::uint32_t reduced_axes,
                 std::int64_t examples, bool accumulate, const View& y, Scratch& scratch);

}  // namespace samegrad
