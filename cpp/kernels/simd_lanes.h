// Partial loads and stores for instruction sets without masked ones.
#pragma once

#include "kernels/vector.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
SAMEGRAD_INLINE Vec<T> load_partial(const T* x, std::int64_t n, std::type_identity_t<T> fill) {
  T lanes[Vec<T>::kLanes];
  for (int i = 0; i < Vec<T>::kLanes; ++i) lanes[i] = i < n ? x[i] : fill;
  return Vec<T>::load(lanes);
}
template <class T>
SAMEGRAD_INLINE void store_partial(Vec<T> v, T* y, std::int64_t n) {
  T lanes[Vec<T>::kLanes];
  v.store(lanes);
  for (int i = 0; i < Vec<T>::kLanes && i < n; ++i) y[i] = lanes[i];
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
