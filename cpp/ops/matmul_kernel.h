// Kernels of matmul.cpp.
#pragma once

#include "ir/op_def.h"

namespace samegrad {

// The contracted and the remaining axis of an operand.
struct MatrixAxes {
  int contracted;
  int kept;
};

inline MatrixAxes left_axes(int rank, bool transposed) {
  return transposed ? MatrixAxes{rank - 2, rank - 1} : MatrixAxes{rank - 1, rank - 2};
}

inline MatrixAxes right_axes(int rank, bool transposed) {
  return left_axes(rank, !transposed);
}

void matmul_kernel(const KernelArgs& args);
void matmul_bias_kernel(const KernelArgs& args);

// Rows of all replicas with one matrix: not where the rows of a are its columns.
void grouped_matmul(const GroupedGemmArgs& args);
bool is_grouped_gemm(const Attrs& attrs);

// A contraction over examples (matmul_tree.cpp).
AccumulatorShape product_state(std::span<const View> in, const Attrs& attrs, const View& result);
const void* open_product(const KernelArgs& args);
void product_leaf(const LeafArgs& args);
void product_subtree(const LeafArgs& args);
std::size_t product_fold_bytes(const FoldArgs& args);

// The right operand in the order the product kernels read it (0 bytes: they read it as it is).
Prepacking matmul_prepacking();

}  // namespace samegrad
