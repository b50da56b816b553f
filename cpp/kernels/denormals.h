// Zeros in place of denormal numbers: for the rows of unary.def and binary.def.
#pragma once

#include <limits>

#include "kernels/maths.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// A zero keeps the sign; NaN, which is not below anything, stays.
template <class T>
SAMEGRAD_INLINE Vec<T> flush_denormals(Vec<T> x) {
  const Mask<T> denormal = absolute(x) < Vec<T>(std::numeric_limits<T>::min());
  return select(denormal, copy_sign(Vec<T>(T(0)), x), x);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
