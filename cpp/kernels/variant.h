// Entry points of one instruction-set variant for its table (kernels/variant.cpp).
//
// The build compiles every kernel file once per row of variants.def with SAMEGRAD_ISA_NAMESPACE =
// its suffix, so that no function of one variant has the name of another's.
#pragma once

#include "kernels/table.h"

#ifndef SAMEGRAD_ISA_NAMESPACE
#error "compile kernel files with -DSAMEGRAD_ISA_NAMESPACE=<suffix of a variant>"
#endif

// Before a loop whose iterations are independent of each other. Clang vectorises it with a check.
#if defined(__clang__)
#define SAMEGRAD_INDEPENDENT
#else
#define SAMEGRAD_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// f.operator()<T>(), a pointer, with the type of elements of a dtype of the set; null for others.
template <DTypes kSet = samegrad::kComputed, class F>
inline auto kernel_for(DType dtype, F&& f) {
  using First = typename ElementOf<DType(std::countr_zero(kSet))>::Type;
  using Pointer = decltype(f.template operator()<First>());
  const auto null = []() -> Pointer { return nullptr; };
  const auto find = [&]<class T>() -> Pointer {
    if constexpr (kIsOneOf<T, kSet>) {
      return f.template operator()<T>();
    } else {
      return nullptr;
    }
  };
  return visit_or(dtype, find, null);
}

// Each returns null where the function is not defined for the dtype.
UnaryKernel unary_kernel(UnaryFn fn, DType dtype);
BinaryKernel binary_kernel(BinaryFn fn, DType dtype);
SelectKernel select_kernel(DType dtype);
CastKernel cast_kernel(DType from, DType to);
RowReduceKernel row_reduce_kernel(ReduceFn fn, DType dtype);
ColumnReduceKernel column_reduce_kernel(ReduceFn fn, DType dtype);
ColumnFoldKernel column_fold_kernel(ReduceFn fn, DType dtype);
ArgReduceKernel arg_max_kernel(DType dtype);
ArgReduceKernel arg_min_kernel(DType dtype);
ScanKernel scan_kernel(ScanFn fn, DType dtype);
AffineScanKernel affine_scan_kernel(DType dtype);
const ProductKernels* product_kernels(DType dtype);
const PoolKernels* pool_kernels(DType dtype);
const SoftmaxKernels* softmax_kernels(DType dtype);
const RandomKernels* random_kernels(DType dtype);
RandomIntegersKernel random_integers_kernel(DType dtype);
HashKernel hash_kernel(DType dtype);

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
