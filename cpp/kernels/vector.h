// Vec<T>: as many floats as one register of the variant holds. No alignment is ever needed.
//
// Written on the compiler's vector extensions: arithmetic is IEEE 754, lane by lane, and never
// contracted. A file kernels/simd_*.h includes it once it has said how wide a register is
// (kVectorBytes), and adds the instructions that C++ has no operator for.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/variant.h"

#define SAMEGRAD_INLINE inline __attribute__((always_inline))

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

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

// True if T has vector registers. Other integers are computed one by one: the compiler vectorizes
// these loops, and integer results do not depend on the order.
template <class T>
inline constexpr bool kInRegisters =
    kIsOneOf<T, samegrad::kFloats & kComputed> || kIsOneOf<T, kIndices>;

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

// a > b ? a : b and a < b ? a : b, so b where they are equal or either is NaN: one instruction for
// floats.
template <class T>
SAMEGRAD_INLINE Vec<T> max_or_second(Vec<T> a, Vec<T> b) {
  return select(a > b, a, b);
}
template <class T>
SAMEGRAD_INLINE Vec<T> min_or_second(Vec<T> a, Vec<T> b) {
  return select(a < b, a, b);
}

// Calls f for each lane by itself.
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

// Lane numbers below n.
template <class T>
SAMEGRAD_INLINE Mask<T> first_lanes(std::int64_t n) {
  typename Mask<T>::Raw number;
  for (int i = 0; i < Vec<T>::kLanes; ++i) number[i] = i;
  return {number < static_cast<Bits<T>>(n)};
}

// Integers of 64 bits.
typedef std::uint64_t Words __attribute__((vector_size(kVectorBytes)));

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
