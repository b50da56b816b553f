// unary_of<T>, from the rows of unary.def; to be instantiated per dtype.
#pragma once

#include "kernels/denormals.h"
#include "kernels/elementwise.h"
#include "kernels/elementwise_fn.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

#define SAMEGRAD_UNARY(name, doc, dtypes, result, forward, ...) \
  struct name##_row {                                           \
    template <class X>                                          \
    static SAMEGRAD_INLINE auto apply(X x) {                    \
      return forward;                                           \
    }                                                           \
  };
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY

template <class T>
UnaryKernel unary_of(UnaryFn fn) {
  static constexpr UnaryKernel kKernels[] = {
#define SAMEGRAD_UNARY(name, doc, dtypes, result, forward, ...) \
  choose_unary<T, name##_row, dtypes<T>, result>(),
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY
  };
  return fn < UnaryFn::kCount ? kKernels[static_cast<int>(fn)] : nullptr;
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
