// Vec<T>: as many floats as one register of the variant holds. No alignment is ever needed.
//
// Written on the compiler's vector extensions; only square root, rounding and fused multiply-add
// need the instruction by name. Arithmetic is IEEE 754, lane by lane, and never contracted.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/variant.h"

#define SAMEGRAD_INLINE inline __attribute__((always_inline))

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

// The signed integer as wide as T.
template <class T>
using Bits = std::make_signed_t<BitsOf<T>>;

// Spelled out per type: GCC takes a vector type that depends on T for T itself.
template <class T>
struct Register;
template <>
struct Register<float> {
  typedef float Type __attribute__((vector_size(kVectorBytes)));
};
template <>
struct Register<double> {
  typedef double Type __attribute__((vector_size(kVectorBytes)));
};
template <>
struct Register<std::int32_t> {
  typedef std::int32_t Type __attribute__((vector_size(kVectorBytes)));
};
template <>
struct Register<std::int64_t> {
  typedef std::int64_t Type __attribute__((vector_size(kVectorBytes)));
};

// True and false, lane by lane: all bits set or none.
template <class T>
struct Mask {
  using Raw = typename Register<Bits<T>>::Type;
  Raw raw;

  friend SAMEGRAD_INLINE Mask operator&(Mask a, Mask b) { return {a.raw & b.raw}; }
  friend SAMEGRAD_INLINE Mask operator|(Mask a, Mask b) { return {a.raw | b.raw}; }
  friend SAMEGRAD_INLINE Mask operator~(Mask a) { return {~a.raw}; }
};

template <class T>
struct Vec {
  using Raw = typename Register<T>::Type;
  using Int = typename Mask<T>::Raw;
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  Raw raw;

  Vec() = default;
  SAMEGRAD_INLINE Vec(Raw value) : raw(value) {}
  SAMEGRAD_INLINE Vec(T value) : raw(value - Raw{}) {}  // value - 0 is value, also for -0

  static SAMEGRAD_INLINE Vec load(const T* from) {
    Vec v;
    std::memcpy(&v.raw, from, sizeof v.raw);
    return v;
  }
  SAMEGRAD_INLINE void store(T* to) const { std::memcpy(to, &raw, sizeof raw); }
  static SAMEGRAD_INLINE Vec from_bits(Int bits) { return Vec(reinterpret_cast<Raw>(bits)); }
  SAMEGRAD_INLINE Int bits() const { return reinterpret_cast<Int>(raw); }

  friend SAMEGRAD_INLINE Vec operator+(Vec a, Vec b) { return Vec(a.raw + b.raw); }
  friend SAMEGRAD_INLINE Vec operator-(Vec a, Vec b) { return Vec(a.raw - b.raw); }
  friend SAMEGRAD_INLINE Vec operator*(Vec a, Vec b) { return Vec(a.raw * b.raw); }
  friend SAMEGRAD_INLINE Vec operator/(Vec a, Vec b) { return Vec(a.raw / b.raw); }
  friend SAMEGRAD_INLINE Vec operator-(Vec a) { return Vec(-a.raw); }
  friend SAMEGRAD_INLINE Mask<T> operator==(Vec a, Vec b) { return {a.raw == b.raw}; }
  friend SAMEGRAD_INLINE Mask<T> operator!=(Vec a, Vec b) { return {a.raw != b.raw}; }
  friend SAMEGRAD_INLINE Mask<T> operator<(Vec a, Vec b) { return {a.raw < b.raw}; }
  friend SAMEGRAD_INLINE Mask<T> operator<=(Vec a, Vec b) { return {a.raw <= b.raw}; }
  friend SAMEGRAD_INLINE Mask<T> operator>(Vec a, Vec b) { return {a.raw > b.raw}; }
  friend SAMEGRAD_INLINE Mask<T> operator>=(Vec a, Vec b) { return {a.raw >= b.raw}; }
};

template <class T>
SAMEGRAD_INLINE Vec<T> select(Mask<T> mask, Vec<T> a, std::type_identity_t<Vec<T>> b) {
  return Vec<T>(mask.raw ? a.raw : b.raw);
}

template <class T>
SAMEGRAD_INLINE bool any(Mask<T> mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(mask.raw),
                                reinterpret_cast<__m512i>(mask.raw)) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(mask.raw)) != 0;
#elif defined(__x86_64__)
  return _mm_movemask_epi8(reinterpret_cast<__m128i>(mask.raw)) != 0;
#else
  bool found = false;
  for (int i = 0; i < Vec<T>::kLanes; ++i) found |= mask.raw[i] != 0;
  return found;
#endif
}

// The same function for each lane by itself.
template <class T, class F>
SAMEGRAD_INLINE Vec<T> per_lane(Vec<T> x, F f) {
  T lanes[Vec<T>::kLanes];
  x.store(lanes);
  for (T& lane : lanes) lane = f(lane);
  return Vec<T>::load(lanes);
}
template <class T, class F>
SAMEGRAD_INLINE Vec<T> per_lane(Vec<T> a, Vec<T> b, F f) {
  T lanes[Vec<T>::kLanes], others[Vec<T>::kLanes];
  a.store(lanes);
  b.store(others);
  for (int i = 0; i < Vec<T>::kLanes; ++i) lanes[i] = f(lanes[i], others[i]);
  return Vec<T>::load(lanes);
}

// The instructions C++ has no operator for, per width and type. (The masked forms of AVX-512 name
// what becomes of lanes left out: the plain ones make GCC 12 warn of an undefined value.)
#if defined(__AVX512F__)
#define SAMEGRAD_SQRT(suffix, x) _mm512_maskz_sqrt_##suffix(-1, x)
#define SAMEGRAD_ROUND(suffix, x, mode) _mm512_maskz_roundscale_##suffix(-1, x, mode)
#define SAMEGRAD_FMA(suffix, a, b, c) _mm512_fmadd_##suffix(a, b, c)
#define SAMEGRAD_MINMAX(name, suffix, a, b) _mm512_maskz_##name##_##suffix(-1, a, b)
#elif defined(__AVX2__)
#define SAMEGRAD_SQRT(suffix, x) _mm256_sqrt_##suffix(x)
#define SAMEGRAD_ROUND(suffix, x, mode) _mm256_round_##suffix(x, mode)
#define SAMEGRAD_FMA(suffix, a, b, c) _mm256_fmadd_##suffix(a, b, c)
#define SAMEGRAD_MINMAX(name, suffix, a, b) _mm256_##name##_##suffix(a, b)
#elif defined(__x86_64__)
#define SAMEGRAD_SQRT(suffix, x) _mm_sqrt_##suffix(x)
#define SAMEGRAD_ROUND(suffix, x, mode) _mm_round_##suffix(x, mode)
#define SAMEGRAD_MINMAX(name, suffix, a, b) _mm_##name##_##suffix(a, b)
#endif

// a > b ? a : b and a < b ? a : b, so b where they are equal or either is NaN: one instruction.
template <class T>
SAMEGRAD_INLINE Vec<T> larger_or_second(Vec<T> a, Vec<T> b) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, float>) return SAMEGRAD_MINMAX(max, ps, a.raw, b.raw);
  if constexpr (std::is_same_v<T, double>) return SAMEGRAD_MINMAX(max, pd, a.raw, b.raw);
#endif
  return select(a > b, a, b);
}
template <class T>
SAMEGRAD_INLINE Vec<T> smaller_or_second(Vec<T> a, Vec<T> b) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, float>) return SAMEGRAD_MINMAX(min, ps, a.raw, b.raw);
  if constexpr (std::is_same_v<T, double>) return SAMEGRAD_MINMAX(min, pd, a.raw, b.raw);
#endif
  return select(a < b, a, b);
}

#if defined(__x86_64__)
SAMEGRAD_INLINE Vec<float> sqrt(Vec<float> x) {
  return SAMEGRAD_SQRT(ps, x.raw);
}
SAMEGRAD_INLINE Vec<double> sqrt(Vec<double> x) {
  return SAMEGRAD_SQRT(pd, x.raw);
}
template <int mode>
SAMEGRAD_INLINE Vec<float> round_to(Vec<float> x) {
  return SAMEGRAD_ROUND(ps, x.raw, mode | _MM_FROUND_NO_EXC);
}
template <int mode>
SAMEGRAD_INLINE Vec<double> round_to(Vec<double> x) {
  return SAMEGRAD_ROUND(pd, x.raw, mode | _MM_FROUND_NO_EXC);
}
template <class T>
SAMEGRAD_INLINE Vec<T> floor(Vec<T> x) {
  return round_to<_MM_FROUND_TO_NEG_INF>(x);
}
template <class T>
SAMEGRAD_INLINE Vec<T> ceil(Vec<T> x) {
  return round_to<_MM_FROUND_TO_POS_INF>(x);
}
template <class T>
SAMEGRAD_INLINE Vec<T> round(Vec<T> x) {
  return round_to<_MM_FROUND_TO_NEAREST_INT>(x);
}
#else
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
#endif

// a * b + c: fused where the variant has the instruction; for the insides of functions only.
#if defined(__FMA__)
SAMEGRAD_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return SAMEGRAD_FMA(ps, a.raw, b.raw, c.raw);
}
SAMEGRAD_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return SAMEGRAD_FMA(pd, a.raw, b.raw, c.raw);
}
#else
template <class T>
SAMEGRAD_INLINE Vec<T> fma(Vec<T> a, std::type_identity_t<Vec<T>> b,
                           std::type_identity_t<Vec<T>> c) {
  return a * b + c;
}
#endif

#undef SAMEGRAD_SQRT
#undef SAMEGRAD_ROUND
#undef SAMEGRAD_FMA
#undef SAMEGRAD_MINMAX

// Lane numbers below n; and the first n elements at x, the other lanes being `fill`: nothing beyond
// x + n is touched. 0 <= n <= kLanes.
template <class T>
SAMEGRAD_INLINE Mask<T> first_lanes(std::int64_t n) {
  typename Mask<T>::Raw number;
  for (int i = 0; i < Vec<T>::kLanes; ++i) number[i] = i;
  return {number < static_cast<Bits<T>>(n)};
}
template <class T>
SAMEGRAD_INLINE Vec<T> load_first(const T* x, std::int64_t n, std::type_identity_t<T> fill) {
  T lanes[Vec<T>::kLanes];
#if defined(__AVX2__) && !defined(__AVX512F__)
  const Mask<T> mask = first_lanes<T>(n);
  const __m256i m = reinterpret_cast<__m256i>(mask.raw);
  __m256i bits;
  if constexpr (sizeof(T) == 4) {
    bits = _mm256_maskload_epi32(reinterpret_cast<const int*>(x), m);
  } else {
    bits = _mm256_maskload_epi64(reinterpret_cast<const long long*>(x), m);
  }
  std::memcpy(lanes, &bits, sizeof bits);
  return select(mask, Vec<T>::load(lanes), Vec<T>(fill));
#elif defined(__AVX512F__)
  const unsigned m = (1u << n) - 1u;
  __m512i bits = reinterpret_cast<__m512i>(Vec<T>(fill).raw);
  if constexpr (sizeof(T) == 4) {
    bits = _mm512_mask_loadu_epi32(bits, static_cast<__mmask16>(m), x);
  } else {
    bits = _mm512_mask_loadu_epi64(bits, static_cast<__mmask8>(m), x);
  }
  std::memcpy(lanes, &bits, sizeof bits);
  return Vec<T>::load(lanes);
#else
  for (int i = 0; i < Vec<T>::kLanes; ++i) lanes[i] = i < n ? x[i] : fill;
  return Vec<T>::load(lanes);
#endif
}
// The first n lanes of v to y.
template <class T>
SAMEGRAD_INLINE void store_first(Vec<T> v, T* y, std::int64_t n) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  const __m256i m = reinterpret_cast<__m256i>(first_lanes<T>(n).raw);
  const __m256i bits = reinterpret_cast<__m256i>(v.raw);
  if constexpr (sizeof(T) == 4) {
    _mm256_maskstore_epi32(reinterpret_cast<int*>(y), m, bits);
  } else {
    _mm256_maskstore_epi64(reinterpret_cast<long long*>(y), m, bits);
  }
#elif defined(__AVX512F__)
  const unsigned m = (1u << n) - 1u;
  const __m512i bits = reinterpret_cast<__m512i>(v.raw);
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_epi32(y, static_cast<__mmask16>(m), bits);
  } else {
    _mm512_mask_storeu_epi64(y, static_cast<__mmask8>(m), bits);
  }
#else
  T lanes[Vec<T>::kLanes];
  v.store(lanes);
  for (int i = 0; i < Vec<T>::kLanes && i < n; ++i) y[i] = lanes[i];
#endif
}

// A whole register, or what is left of one.
template <class T>
SAMEGRAD_INLINE Vec<T> load_some(const T* x, std::int64_t left, std::type_identity_t<T> fill) {
  return left >= Vec<T>::kLanes ? Vec<T>::load(x) : load_first(x, left, fill);
}
template <class T>
SAMEGRAD_INLINE void store_some(Vec<T> v, T* y, std::int64_t left) {
  if (left >= Vec<T>::kLanes) [[likely]]
    return v.store(y);
  store_first(v, y, left);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
