// SSE4.2 (x86-64-v2), without fused multiply-add.
#pragma once

#include <immintrin.h>

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
inline constexpr int kVectorBytes = 16;
inline constexpr int kTileRows = 4;  // without FMA a product needs a register of its own
inline constexpr int kTreeRows = 2;
inline constexpr int kTreeVectors = 2;
inline constexpr int kTreeLevels = 2;
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

#include "kernels/simd_unfused.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
SAMEGRAD_INLINE bool any(Mask<T> mask) {
  return _mm_movemask_epi8(reinterpret_cast<__m128i>(mask.raw)) != 0;
}

template <int mode>
SAMEGRAD_INLINE Vec<float> round_to(Vec<float> x) {
  return _mm_round_ps(x.raw, mode | _MM_FROUND_NO_EXC);
}
template <int mode>
SAMEGRAD_INLINE Vec<double> round_to(Vec<double> x) {
  return _mm_round_pd(x.raw, mode | _MM_FROUND_NO_EXC);
}

SAMEGRAD_INLINE Words mul_even(Words a, Words b) {
  return reinterpret_cast<Words>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}

template <class T>
SAMEGRAD_INLINE __m128i narrow(typename Vec<T>::Int places) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const __m128i wide = reinterpret_cast<__m128i>(places);
  __m128i words = _mm_packus_epi32(wide, wide);
  if constexpr (sizeof(T) == 8) words = _mm_packus_epi32(words, words);
  return _mm_packus_epi16(words, words);
}
template <class T>
SAMEGRAD_INLINE __m128i widen_bytes(__m128i bytes) {
  if constexpr (sizeof(T) == 4) return _mm_cvtepu8_epi32(bytes);
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return _mm_cvtepu8_epi64(bytes);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

#define SAMEGRAD_X86(name, ...) _mm_##name(__VA_ARGS__)
#include "kernels/simd_x86.h"
