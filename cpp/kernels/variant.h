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

#define SAMEGRAD_KERNEL(name, Kernel, title, key, function) Kernel name##_kernel key;
#include "kernels/kernels.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
