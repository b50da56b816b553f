// The functions the forward columns of unary.def and binary.def are written in.
//
// Floats arrive as Vec (see kernels/maths.h), integers, truth values and every argument of a
// function with truth values as result one by one: the compiler vectorises those loops, and their
// bits cannot depend on how.
#pragma once

#include <limits>
#include <type_traits>

#include "kernels/power.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// Vec only.
template <class T>
SAMEGRAD_INLINE Vec<T> zero(Vec<T>) {
  return Vec<T>(T(0));
}
template <class T>
SAMEGRAD_INLINE Vec<T> one(Vec<T>) {
  return Vec<T>(T(1));
}
template <class T>
SAMEGRAD_INLINE Vec<T> negate(Vec<T> x) {
  return -x;
}
template <class T>
SAMEGRAD_INLINE Vec<T> sign_of(Vec<T> x) {
  const Vec<T> positive = select(x > zero(x), one(x), x);
  return select(x < zero(x), -one(x), positive);
}
template <class T>
SAMEGRAD_INLINE Vec<T> divide_no_nan(Vec<T> a, Vec<T> b) {
  return select(b == zero(b), zero(b), a / b);
}
template <class T>
SAMEGRAD_INLINE Vec<T> floor_divide(Vec<T> a, Vec<T> b) {
  return floor(a / b);
}
template <class T>
SAMEGRAD_INLINE Vec<T> modulo(Vec<T> a, Vec<T> b) {
  return per_lane(a, b, [](T x, T y) {
    const T rest = std::fmod(x, y);
    return rest != T(0) && (rest < T(0)) != (y < T(0)) ? rest + y : rest;
  });
}

// One element.
template <class T>
concept Scalar = std::is_arithmetic_v<T>;

template <Scalar T>
constexpr T zero(T) {
  return T(0);
}
template <Scalar T>
constexpr T negate(T x) {
  return static_cast<T>(-x);
}
template <Scalar T>
constexpr T absolute(T x) {
  return x < T(0) ? static_cast<T>(-x) : x;
}
template <Scalar T>
constexpr T sign_of(T x) {
  return static_cast<T>((x > T(0)) - (x < T(0)));
}
template <Scalar T>
constexpr T maximum(T a, T b) {
  return a >= b ? a : b;
}
template <Scalar T>
constexpr T minimum(T a, T b) {
  return a <= b ? a : b;
}
// Division by 0 must not end the process, nor must that of the smallest number by -1.
template <Scalar T>
constexpr T floor_divide(T a, T b) {
  if (b == T(0)) return T(0);
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(-a);
  const T quotient = static_cast<T>(a / b), rest = static_cast<T>(a % b);
  return static_cast<T>(quotient - (rest != T(0) && (rest < T(0)) != (b < T(0))));
}
template <Scalar T>
constexpr T modulo(T a, T b) {
  return b == T(0) ? T(0) : static_cast<T>(a - b * floor_divide(a, b));
}
template <Scalar T>
constexpr T power(T a, T b) {
  if (b < T(0)) {
    if (a == T(1)) return a;
    if (std::is_signed_v<T> && a == static_cast<T>(-1)) return b % 2 == 0 ? T(1) : a;
    return T(0);
  }
  T result = T(1);
  for (; b != T(0); b = static_cast<T>(b / 2)) {
    if (b % 2 != 0) result = static_cast<T>(result * a);
    a = static_cast<T>(a * a);
  }
  return result;
}

template <class T>
constexpr bool is_nan(T x) {
  return x != x;
}
template <class T>
constexpr bool is_finite(T x) {
  return x - x == T(0);
}
template <class T>
constexpr bool is_inf(T x) {
  return (x == x) & !is_finite(x);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
