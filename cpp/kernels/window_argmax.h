// The place of a window's maximum, per channel: an integer as wide as T in registers, a byte in
// memory. The compiler would go between the two one element at a time.
#pragma once

#include <cstring>

#include "kernels/simd.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
using Places = typename Vec<T>::Int;

template <class T>
SAMEGRAD_INLINE void store_places(Places<T> places, std::uint8_t* to, std::int64_t left) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  std::uint8_t bytes[16];
  const auto packed = narrow<T>(places);
  static_assert(sizeof packed == sizeof bytes);
  if (left >= kLanes) {
    std::memcpy(to, &packed, static_cast<std::size_t>(kLanes));
    return;
  }
  std::memcpy(bytes, &packed, sizeof bytes);
  for (std::int64_t i = 0; i < left && i < kLanes; ++i) to[i] = bytes[i];
}

template <class T>
SAMEGRAD_INLINE Places<T> load_places(const std::uint8_t* from, std::int64_t left) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  std::uint8_t bytes[kLanes] = {};
  if (left < kLanes) {
    for (std::int64_t i = 0; i < left; ++i) bytes[i] = from[i];
    from = bytes;
  }
  return widen<T>(from);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
