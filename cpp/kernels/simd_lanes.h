// Fallbacks for instruction sets without fused multiply-add or masked loads.
#pragma once

#include "kernels/vector.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

inline constexpr bool kConvertsHalves = false;
Vec<float> widen_halves(const Float16* from);
void narrow_to_halves(Vec<float> x, Float16* to);

template <class T>
SAMEGRAD_INLINE Vec<T> fma(Vec<T> a, std::type_identity_t<Vec<T>> b,
                           std::type_identity_t<Vec<T>> c) {
  return a * b + c;
}

template <class T>
SAMEGRAD_INLINE Vec<T> load_first(const T* x, std::int64_t n, std::type_identity_t<T> fill) {
  T lanes[Vec<T>::kLanes];
  for (int i = 0; i < Vec<T>::kLanes; ++i) lanes[i] = i < n ? x[i] : fill;
  return Vec<T>::load(lanes);
}
template <class T>
SAMEGRAD_INLINE void store_first(Vec<T> v, T* y, std::int64_t n) {
  T lanes[Vec<T>::kLanes];
  v.store(lanes);
  for (int i = 0; i < Vec<T>::kLanes && i < n; ++i) y[i] = lanes[i];
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
