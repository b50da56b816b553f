// The place of a window's maximum, per channel: an integer as wide as T in registers, a byte in
// memory. The compiler would go between the two one element at a time.
#pragma once

#include <cstring>

#include "kernels/simd.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
using Places = typename Vec<T>::Int;

#if defined(__AVX512F__)
template <class T>
SAMEGRAD_INLINE __m128i narrow(__m512i places) {
  if constexpr (sizeof(T) == 4) return _mm512_maskz_cvtepi32_epi8(-1, places);
  return _mm512_maskz_cvtepi64_epi8(-1, places);
}
template <class T>
SAMEGRAD_INLINE __m512i widen(__m128i bytes) {
  if constexpr (sizeof(T) == 4) return _mm512_maskz_cvtepu8_epi32(-1, bytes);
  return _mm512_maskz_cvtepu8_epi64(-1, bytes);
}
#elif defined(__AVX2__)
template <class T>
SAMEGRAD_INLINE __m128i narrow(__m256i places) {
  const __m128i low = _mm256_castsi256_si128(places);
  const __m128i high = _mm256_extracti128_si256(places, 1);
  __m128i words = _mm_packus_epi32(low, high);
  if constexpr (sizeof(T) == 8) words = _mm_packus_epi32(words, words);
  return _mm_packus_epi16(words, words);
}
template <class T>
SAMEGRAD_INLINE __m256i widen(__m128i bytes) {
  if constexpr (sizeof(T) == 4) return _mm256_cvtepu8_epi32(bytes);
  return _mm256_cvtepu8_epi64(bytes);
}
#elif defined(__x86_64__)
template <class T>
SAMEGRAD_INLINE __m128i narrow(__m128i places) {
  __m128i words = _mm_packus_epi32(places, places);
  if constexpr (sizeof(T) == 8) words = _mm_packus_epi32(words, words);
  return _mm_packus_epi16(words, words);
}
template <class T>
SAMEGRAD_INLINE __m128i widen(__m128i bytes) {
  if constexpr (sizeof(T) == 4) return _mm_cvtepu8_epi32(bytes);
  return _mm_cvtepu8_epi64(bytes);
}
#endif

#if defined(__x86_64__)
using WholeRegister = decltype(widen<float>(__m128i()));
#endif

template <class T>
SAMEGRAD_INLINE void store_places(Places<T> places, std::uint8_t* to, std::int64_t left) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  std::uint8_t bytes[16];
#if defined(__x86_64__)
  const __m128i packed = narrow<T>(reinterpret_cast<WholeRegister>(places));
  if (left >= kLanes) {
    std::memcpy(to, &packed, static_cast<std::size_t>(kLanes));
    return;
  }
  std::memcpy(bytes, &packed, sizeof bytes);
#else
  for (int i = 0; i < kLanes; ++i) bytes[i] = static_cast<std::uint8_t>(places[i]);
#endif
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
#if defined(__x86_64__)
  // Exactly the bytes, through an integer: a longer read of a short write waits for memory.
  if constexpr (kLanes == 16) {
    return reinterpret_cast<Places<T>>(
        widen<T>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  } else {
    std::uint64_t packed = 0;
    std::memcpy(&packed, from, static_cast<std::size_t>(kLanes));
    return reinterpret_cast<Places<T>>(widen<T>(_mm_cvtsi64_si128(static_cast<long long>(packed))));
  }
#else
  Places<T> places;
  for (int i = 0; i < kLanes; ++i) places[i] = from[i];
  return places;
#endif
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
