// binary_of<T>, from the rows of binary.def; to be instantiated per dtype.
#pragma once

#include "kernels/denormals.h"
#include "kernels/elementwise.h"
#include "kernels/elementwise_fn.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

#define SAMEGRAD_BINARY(name, doc, dtypes, result, forward, ...) \
  struct name##_row {                                            \
    template <class X>                                           \
    static SAMEGRAD_INLINE auto apply(X a, X b) {                \
      return forward;                                            \
    }                                                            \
  };
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY

template <class T>
BinaryKernel binary_of(BinaryFn fn) {
  static constexpr BinaryKernel kKernels[] = {
#define SAMEGRAD_BINARY(name, doc, dtypes, result, forward, ...) \
  choose_binary<T, name##_row, dtypes<T>, result>(),
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
  };
  return fn < BinaryFn::kCount ? kKernels[static_cast<int>(fn)] : nullptr;
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
