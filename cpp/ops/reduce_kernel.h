// Reductions of elements, in the fixed reduction order.
#pragma once

#include "ops/partition.h"
#include "ops/tree_reduction.h"

namespace samegrad {

// One bit per axis; ValueError if an axis is out of range or named twice.
std::uint32_t axes_mask(std::string_view op_name, const std::vector<std::int64_t>& axes, int rank);

// Neighbouring axes that are all reduced or all kept, as one. Nothing else is merged: what is 1 in
// one tile (a count of examples) may be larger in the next, and the order must be the same.
struct AxisGroups {
  int count = 0;
  std::int64_t size[kMaxRank];
  bool reduced[kMaxRank];

  AxisGroups() = default;
  AxisGroups(const Shape& shape, std::uint32_t reduced_axes);
  void push(std::int64_t dim, bool is_reduced);
  bool any_reduced() const;
  std::int64_t size_of_first(int last) const;
};

// Groups are reduced from the innermost outwards: the last one of all by lanes (row_reduce), others
// in order (column_reduce).
struct ReducePass {
  Lines lines;  // of the groups before the pass; results are at [outer][columns]
  bool by_lanes = false, reduces = false;
  AxisGroups rest;  // behind it
};
ReducePass innermost_pass(AxisGroups groups);
// `width` columns from `column` on of results at y for lines at x.
void reduce_lines(ReduceFn fn, DType dtype, bool by_lanes, const Lines& lines, std::int64_t column,
                  std::int64_t width, const void* x, void* y);

// All passes, or a copy where nothing is reduced.
void reduce_groups(ReduceFn fn, DType dtype, AxisGroups groups, const void* x, void* y,
                   Scratch& scratch);

// ---- one call that threads share (Parts) ----

std::int64_t parts_of_reduction(const CostArgs& args);
std::size_t state_of_reduction(const CostArgs& args);
std::size_t scratch_of_reduction(const CostArgs& args);
void run_reduction_parts(ReduceFn fn, const KernelArgs& args, std::int64_t begin, std::int64_t end);
void finish_reduction(ReduceFn fn, const KernelArgs& args);

// ---- the tree over examples ----
// Each example is reduced by itself to what the result has, as above; those of a leaf are put
// together in order. A result of one element takes each example by row_reduce and has leaves of one
// example, so that shares of any size agree.

AccumulatorShape reduction_state(std::span<const View> in, const Attrs& attrs, const View& result);
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
