// How the elements of a reduction are put together, in which order.
#pragma once

#include "ops/tree_rows.h"

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

// ---- the tree over examples ----
// Each example is reduced by itself to what the result has, as above; those of a leaf are put
// together in order. A result of one element takes each example by row_reduce and has leaves of one
// example, so that shares of any size agree.

StateShape reduction_state(std::span<const View> in, const Attrs& attrs, const View& result);
const void* open_reduction(ReduceFn fn, BinaryFn join, const KernelArgs& args);
void reduction_leaf(const LeafArgs& args);
void reduction_subtree(const LeafArgs& args);
void reduction_neutral(ReduceFn fn, const NeutralArgs& args);

template <ReduceFn kFn, BinaryFn kJoin>
TreeKernel reduction_tree() {
  return {
      .state = reduction_state,
      .open = [](const KernelArgs& args) { return open_reduction(kFn, kJoin, args); },
      .leaf = reduction_leaf,
      .combine = combine_elements<kJoin>,
      .neutral = [](const NeutralArgs& args) { reduction_neutral(kFn, args); },
      .leaf_examples = [](const Shape& result) { return result.size() == 1 ? 1 : kLeafExamples; },
      .subtree = reduction_subtree};
}

}  // namespace samegrad
