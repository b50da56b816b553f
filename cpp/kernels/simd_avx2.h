// AVX2 and FMA (x86-64-v3).
#pragma once

#include <immintrin.h>

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
inline constexpr int kVectorBytes = 32;
inline constexpr int kTileRows = 6;  // 12 accumulators, 2 columns of B and a value of A: 15 of 16
// Sums that wait for their right half are in the first cache: with few sums in registers at a time
// each multiply-add would wait for the last one.
inline constexpr int kTreeRows = 4;
inline constexpr int kTreeVectors = 2;
inline constexpr int kTreeLevels = 4;
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

#include "kernels/vector.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
SAMEGRAD_INLINE bool any(Mask<T> mask) {
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(mask.raw)) != 0;
}

template <int mode>
SAMEGRAD_INLINE Vec<float> round_to(Vec<float> x) {
  return _mm256_round_ps(x.raw, mode | _MM_FROUND_NO_EXC);
}
template <int mode>
SAMEGRAD_INLINE Vec<double> round_to(Vec<double> x) {
  return _mm256_round_pd(x.raw, mode | _MM_FROUND_NO_EXC);
}

SAMEGRAD_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return _mm256_fmadd_ps(a.raw, b.raw, c.raw);
}
SAMEGRAD_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return _mm256_fmadd_pd(a.raw, b.raw, c.raw);
}

template <class T>
SAMEGRAD_INLINE Vec<T> load_partial(const T* x, std::int64_t n, std::type_identity_t<T> fill) {
  T lanes[Vec<T>::kLanes];
  const Mask<T> mask = first_lanes<T>(n);
  const __m256i m = reinterpret_cast<__m256i>(mask.raw);
  __m256i bits;
  if constexpr (sizeof(T) == 4) {
    bits = _mm256_maskload_epi32(reinterpret_cast<const int*>(x), m);
  } else {
    static_assert(sizeof(T) == 8);
    bits = _mm256_maskload_epi64(reinterpret_cast<const long long*>(x), m);
  }
  std::memcpy(lanes, &bits, sizeof bits);
  return select(mask, Vec<T>::load(lanes), Vec<T>(fill));
}
template <class T>
SAMEGRAD_INLINE void store_partial(Vec<T> v, T* y, std::int64_t n) {
  const __m256i m = reinterpret_cast<__m256i>(first_lanes<T>(n).raw);
  const __m256i bits = reinterpret_cast<__m256i>(v.raw);
  if constexpr (sizeof(T) == 4) {
    _mm256_maskstore_epi32(reinterpret_cast<int*>(y), m, bits);
  } else {
    static_assert(sizeof(T) == 8);
    _mm256_maskstore_epi64(reinterpret_cast<long long*>(y), m, bits);
  }
}

SAMEGRAD_INLINE Words mul_even(Words a, Words b) {
  return reinterpret_cast<Words>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

template <class T>
SAMEGRAD_INLINE __m128i narrow(typename Vec<T>::Int places) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const __m256i wide = reinterpret_cast<__m256i>(places);
  const __m128i low = _mm256_castsi256_si128(wide);
  const __m128i high = _mm256_extracti128_si256(wide, 1);
  __m128i words = _mm_packus_epi32(low, high);
  if constexpr (sizeof(T) == 8) words = _mm_packus_epi32(words, words);
  return _mm_packus_epi16(words, words);
}
template <class T>
SAMEGRAD_INLINE __m256i widen_bytes(__m128i bytes) {
  if constexpr (sizeof(T) == 4) return _mm256_cvtepu8_epi32(bytes);
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return _mm256_cvtepu8_epi64(bytes);
}

inline constexpr bool kConvertsHalves = true;
SAMEGRAD_INLINE Vec<float> widen_halves(const Float16* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
SAMEGRAD_INLINE void narrow_to_halves(Vec<float> x, Float16* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_cvtps_ph(x.raw, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

#define SAMEGRAD_X86(name, ...) _mm256_##name(__VA_ARGS__)
#include "kernels/simd_x86.h"
