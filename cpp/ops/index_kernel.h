// Kernels of index.cpp.
#pragma once

#include <string_view>

#include "ir/op_def.h"
#include "ops/attributes.h"
#include "tensor/sparse_tree.h"
#include "tensor/tree_kernel.h"

namespace samegrad {

// The axis of IndexAttrs in a shape.
inline int axis_along(const Attrs& attrs, const Shape& shape) {
  const std::int64_t axis = attrs.as<IndexAttrs>().axis;
  return int(axis < 0 ? axis + shape.rank() : axis);
}

[[noreturn]] void fail_index(std::string_view op_name, const KernelArgs& args, const View& indices,
                             std::int64_t value, std::int64_t flat, std::int64_t size);

// The index at a flat position of an operand of integers; InvalidArgumentError unless it is in
// [0, size).
template <class I>
std::int64_t index_at(std::string_view op_name, const KernelArgs& args, const View& indices,
                      std::int64_t flat, std::int64_t size) {
  const auto value = std::int64_t(indices.as<I>()[flat]);
  if (value < 0 || value >= size) fail_index(op_name, args, indices, value, flat, size);
  return value;
}

std::int64_t rows_of_gather(const CostArgs& args);
void run_gather(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void segment_sum_kernel(const KernelArgs& args);
AccumulatorShape segment_state(std::span<const View> in, const Attrs& attrs, const View& result);
const void* open_segments(const KernelArgs& args);
void segment_leaf(const LeafArgs& args);
void segment_subtree(const LeafArgs& args);
// The sparse form of segment_sum along axis 0 with the examples on that axis.
const SparseTree& segment_rows();
void nonzero_rows_kernel(const KernelArgs& args);
std::int64_t rows_of_one_hot(const CostArgs& args);
void run_one_hot(const KernelArgs& args, std::int64_t begin, std::int64_t end);
// Rows of `depth` elements of y, a number of the dtype: *on at the row's index, *off elsewhere.
void one_hot_rows(DType index, const void* indices, DType dtype, const void* on, const void* off,
                  void* y, std::int64_t rows, std::int64_t depth);
void run_take_along(const KernelArgs& args, std::int64_t begin, std::int64_t end);
std::int64_t outer_of_take_along(const CostArgs& args);
void run_take_along_grad(const KernelArgs& args, std::int64_t begin, std::int64_t end);

}  // namespace samegrad
