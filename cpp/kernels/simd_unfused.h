// Fallbacks for instruction sets without fused multiply-add or conversions of float16.
#pragma once

#include "kernels/simd_lanes.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

inline constexpr bool kConvertsHalves = false;
Vec<float> widen_halves(const Float16* from);
void narrow_to_halves(Vec<float> x, Float16* to);

template <class T>
SAMEGRAD_INLINE Vec<T> fma(Vec<T> a, std::type_identity_t<Vec<T>> b,
                           std::type_identity_t<Vec<T>> c) {
  return a * b + c;
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
