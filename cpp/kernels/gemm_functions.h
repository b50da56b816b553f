// The functions of ProductKernels, typed as the table wants them; float and double.
#pragma once

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
std::size_t packed_bytes(std::int64_t k, std::int64_t n);
template <class T>
void pack(const void* b, std::int64_t k, std::int64_t n, std::int64_t ldb, bool transposed,
          void* packed);
template <class T>
void matmul(const void* a, std::int64_t m, std::int64_t k, std::int64_t lda, const void* packed,
            std::int64_t n, void* y, std::int64_t ldy, const Epilogue* epilogue);
template <class T>
std::size_t matmul_grouped_scratch_bytes(std::int64_t k, std::int64_t columns);
template <class T>
void matmul_grouped(const GroupedGemm& product);
template <class T>
std::size_t transposed_workspace_bytes(std::int64_t rows, std::int64_t m, std::int64_t n);
template <class T>
void matmul_transposed(const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
                       std::int64_t rows, std::int64_t m, std::int64_t n, void* y, std::int64_t ldy,
                       bool accumulate, void* workspace);

template <class T>
std::size_t matmul_tree_scratch_bytes(std::int64_t examples);
template <class T>
void matmul_tree(const PackedTree& block, void* y, std::int64_t ldy, void* scratch);
template <class T>
std::size_t tree_packed_bytes(std::int64_t rows, std::int64_t columns, bool right);
template <class T>
void tree_pack(const void* x, std::int64_t ldx, std::int64_t rows, std::int64_t columns, bool right,
               void* packed);

template <class T>
std::size_t matmul_tree_add_scratch_bytes(const TreeSum& sum, std::int64_t m, std::int64_t n);
template <class T>
void matmul_tree_add(const TreeSum& sum, std::int64_t row, std::int64_t column, std::int64_t m,
                     std::int64_t n, void* y, std::int64_t ldy, void* scratch);

template <class T>
std::size_t conv2d_packed_bytes(const WindowGeometry& g);
template <class T>
void conv2d_pack(const WindowGeometry& g, const void* filter, std::int64_t begin, std::int64_t end,
                 void* packed);
template <class T>
std::size_t conv2d_scratch_bytes(const WindowGeometry& g);
template <class T>
void conv2d(const WindowGeometry& g, const void* x, const void* packed_filter, void* y,
            const Epilogue* epilogue, void* scratch);

template <class T>
std::size_t conv2d_input_grad_packed_bytes(const WindowGeometry& g);
template <class T>
void conv2d_input_grad_pack(const WindowGeometry& g, const void* filter, std::int64_t begin,
                            std::int64_t end, void* packed);
template <class T>
std::size_t conv2d_input_grad_scratch_bytes(const WindowGeometry& g);
template <class T>
void conv2d_input_grad(const WindowGeometry& g, const void* dy, const void* packed, void* dx,
                       void* scratch);

template <class T>
std::size_t conv2d_filter_grad_scratch_bytes(const WindowGeometry& g, const FilterBlock& block);
template <class T>
void conv2d_filter_grad(const WindowGeometry& g, const void* x, const void* dy,
                        const FilterBlock& block, void* dfilter, bool accumulate, void* scratch);
template <class T>
std::size_t conv2d_filter_tree_scratch_bytes(const WindowGeometry& g, std::int64_t examples,
                                             std::int64_t images_per_example,
                                             const FilterBlock& block);
template <class T>
void conv2d_filter_tree(const WindowGeometry& g, const void* x, const void* dy,
                        std::int64_t examples, std::int64_t images_per_example,
                        const FilterBlock& block, void* dfilter, void* scratch);

// Integers, modulo 2^bits.
const ProductKernels* integer_product_kernels(DType dtype);

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
