// AVX-512 (x86-64-v4). The masked forms name what becomes of lanes left out: the plain ones make
// GCC 12 warn of an undefined value.
#pragma once

#include <immintrin.h>

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
inline constexpr int kVectorBytes = 64;
inline constexpr int kTileRows = 8;
inline constexpr int kTreeRows = 8;
inline constexpr int kTreeVectors = 1;
inline constexpr int kTreeLevels = 3;
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

#include "kernels/vector.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
SAMEGRAD_INLINE bool any(Mask<T> mask) {
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(mask.raw),
                                reinterpret_cast<__m512i>(mask.raw)) != 0;
}

template <int mode>
SAMEGRAD_INLINE Vec<float> round_to(Vec<float> x) {
  return _mm512_maskz_roundscale_ps(-1, x.raw, mode | _MM_FROUND_NO_EXC);
}
template <int mode>
SAMEGRAD_INLINE Vec<double> round_to(Vec<double> x) {
  return _mm512_maskz_roundscale_pd(-1, x.raw, mode | _MM_FROUND_NO_EXC);
}

SAMEGRAD_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return _mm512_fmadd_ps(a.raw, b.raw, c.raw);
}
SAMEGRAD_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return _mm512_fmadd_pd(a.raw, b.raw, c.raw);
}

template <class T>
SAMEGRAD_INLINE Vec<T> load_partial(const T* x, std::int64_t n, std::type_identity_t<T> fill) {
  T lanes[Vec<T>::kLanes];
  const unsigned m = (1u << n) - 1u;
  __m512i bits = reinterpret_cast<__m512i>(Vec<T>(fill).raw);
  if constexpr (sizeof(T) == 4) {
    bits = _mm512_mask_loadu_epi32(bits, static_cast<__mmask16>(m), x);
  } else {
    static_assert(sizeof(T) == 8);
    bits = _mm512_mask_loadu_epi64(bits, static_cast<__mmask8>(m), x);
  }
  std::memcpy(lanes, &bits, sizeof bits);
  return Vec<T>::load(lanes);
}
template <class T>
SAMEGRAD_INLINE void store_partial(Vec<T> v, T* y, std::int64_t n) {
  const unsigned m = (1u << n) - 1u;
  const __m512i bits = reinterpret_cast<__m512i>(v.raw);
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_epi32(y, static_cast<__mmask16>(m), bits);
  } else {
    static_assert(sizeof(T) == 8);
    _mm512_mask_storeu_epi64(y, static_cast<__mmask8>(m), bits);
  }
}

SAMEGRAD_INLINE Words mul_even(Words a, Words b) {
  return reinterpret_cast<Words>(
      _mm512_maskz_mul_epu32(-1, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

template <class T>
SAMEGRAD_INLINE __m128i narrow(typename Vec<T>::Int places) {
  const __m512i wide = reinterpret_cast<__m512i>(places);
  if constexpr (sizeof(T) == 4) return _mm512_maskz_cvtepi32_epi8(-1, wide);
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return _mm512_maskz_cvtepi64_epi8(-1, wide);
}
template <class T>
SAMEGRAD_INLINE __m512i widen_bytes(__m128i bytes) {
  if constexpr (sizeof(T) == 4) return _mm512_maskz_cvtepu8_epi32(-1, bytes);
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return _mm512_maskz_cvtepu8_epi64(-1, bytes);
}

inline constexpr bool kConvertsHalves = true;
SAMEGRAD_INLINE Vec<float> widen_halves(const Float16* from) {
  return _mm512_maskz_cvtph_ps(-1, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
SAMEGRAD_INLINE void narrow_to_halves(Vec<float> x, Float16* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_maskz_cvtps_ph(-1, x.raw, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

#define SAMEGRAD_X86(name, ...) _mm512_maskz_##name(-1, __VA_ARGS__)
#include "kernels/simd_x86.h"
