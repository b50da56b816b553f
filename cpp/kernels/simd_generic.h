// Any processor: what the compiler makes of loops over the lanes.
#pragma once

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
inline constexpr int kVectorBytes = 16;
inline constexpr int kTileRows = 4;
inline constexpr int kTreeRows = 2;
inline constexpr int kTreeVectors = 2;
inline constexpr int kTreeLevels = 2;
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

#include "kernels/simd_unfused.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
SAMEGRAD_INLINE bool any(Mask<T> mask) {
  bool found = false;
  for (int i = 0; i < Vec<T>::kLanes; ++i) found |= mask.raw[i] != 0;
  return found;
}

template <class T>
SAMEGRAD_INLINE Vec<T> sqrt(Vec<T> x) {
  return per_lane(x, [](T v) { return std::sqrt(v); });
}
template <class T>
SAMEGRAD_INLINE Vec<T> floor(Vec<T> x) {
  return per_lane(x, [](T v) { return std::floor(v); });
}
template <class T>
SAMEGRAD_INLINE Vec<T> ceil(Vec<T> x) {
  return per_lane(x, [](T v) { return std::ceil(v); });
}
template <class T>
SAMEGRAD_INLINE Vec<T> round(Vec<T> x) {
  return per_lane(x, [](T v) { return std::nearbyint(v); });
}

SAMEGRAD_INLINE Words mul_even(Words a, Words b) {
  return (a & 0xffffffffu) * (b & 0xffffffffu);
}

struct Bytes {
  std::uint8_t byte[16];
};
template <class T>
SAMEGRAD_INLINE Bytes narrow(typename Vec<T>::Int places) {
  Bytes bytes = {};
  for (int i = 0; i < Vec<T>::kLanes; ++i) bytes.byte[i] = static_cast<std::uint8_t>(places[i]);
  return bytes;
}
template <class T>
SAMEGRAD_INLINE typename Vec<T>::Int widen(const std::uint8_t* from) {
  typename Vec<T>::Int places = {};
  for (int i = 0; i < Vec<T>::kLanes; ++i) places[i] = from[i];
  return places;
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
