// What the parts of one instruction-set variant offer to its table (kernels/variant.cpp).
//
// The build compiles every kernel file once per variant with SAMEGRAD_ISA_NAMESPACE = v2, v3, v4 or
// generic, so that no function of one variant has the name of another's.
#pragma once

#include "kernels/table.h"

#ifndef SAMEGRAD_ISA_NAMESPACE
#error "compile kernel files with -DSAMEGRAD_ISA_NAMESPACE=v2|v3|v4|generic"
#endif

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// Each returns null where the function is not defined for the dtype.
UnaryKernel unary_kernel(UnaryFn fn, DType dtype);
BinaryKernel binary_kernel(BinaryFn fn, DType dtype);
SelectKernel select_kernel(DType dtype);
CastKernel cast_kernel(DType from, DType to);
RowReduceKernel row_reduce_kernel(ReduceFn fn, DType dtype);
ColumnReduceKernel column_reduce_kernel(ReduceFn fn, DType dtype);
ArgReduceKernel arg_max_kernel(DType dtype);
ArgReduceKernel arg_min_kernel(DType dtype);
const ProductKernels* product_kernels(DType dtype);
const PoolKernels* pool_kernels(DType dtype);
const SoftmaxKernels* softmax_kernels(DType dtype);
const RandomKernels* random_kernels(DType dtype);
void random_integers(RandomKey key, std::int64_t first_row, std::int64_t rows, std::int64_t n,
                     std::int64_t low, std::int64_t high, DType dtype, void* y);

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
