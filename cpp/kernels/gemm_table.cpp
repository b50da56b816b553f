#include "kernels/gemm_functions.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

template <class T>
constexpr ProductKernels kProducts = {
    .packed_bytes = packed_bytes<T>,
    .pack = pack<T>,
    .matmul = matmul<T>,
    .matmul_grouped_scratch_bytes = matmul_grouped_scratch_bytes<T>,
    .matmul_grouped = matmul_grouped<T>,
    .transposed_workspace_bytes = transposed_workspace_bytes<T>,
    .matmul_transposed = matmul_transposed<T>,
    .matmul_tree_scratch_bytes = matmul_tree_scratch_bytes<T>,
    .matmul_tree = matmul_tree<T>,
    .tree_packed_bytes = tree_packed_bytes<T>,
    .tree_pack = tree_pack<T>,
    .matmul_tree_add_scratch_bytes = matmul_tree_add_scratch_bytes<T>,
    .matmul_tree_add = matmul_tree_add<T>,
    .conv2d_packed_bytes = conv2d_packed_bytes<T>,
    .conv2d_pack = conv2d_pack<T>,
    .conv2d_scratch_bytes = conv2d_scratch_bytes<T>,
    .conv2d = conv2d<T>,
    .conv2d_input_grad_packed_bytes = conv2d_input_grad_packed_bytes<T>,
    .conv2d_input_grad_pack = conv2d_input_grad_pack<T>,
    .conv2d_input_grad_scratch_bytes = conv2d_input_grad_scratch_bytes<T>,
    .conv2d_input_grad = conv2d_input_grad<T>,
    .conv2d_filter_grad_scratch_bytes = conv2d_filter_grad_scratch_bytes<T>,
    .conv2d_filter_grad = conv2d_filter_grad<T>,
    .conv2d_filter_tree_scratch_bytes = conv2d_filter_tree_scratch_bytes<T>,
    .conv2d_filter_tree = conv2d_filter_tree<T>};

}  // namespace

const ProductKernels* product_kernel(DType dtype) {
  const auto* floats = kernel_for<samegrad::kFloats & kComputed>(dtype, []<class T>() {
    static_assert(kSumsInPlace<T>, "a chain goes on from what is in the result");
    return &kProducts<T>;
  });
  return floats != nullptr ? floats : integer_product_kernels(dtype);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
