// Loops that apply one function to every element, and the tables of functions per dtype.
#pragma once

#include <cstdint>

#include "kernels/functions.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// The columns `dtypes` and `result` of unary.def and binary.def.
template <class T>
inline constexpr bool kFloats = kIsOneOf<T, samegrad::kFloats>;
template <class T>
inline constexpr bool kBools = kIsOneOf<T, samegrad::kBools>;
template <class T>
inline constexpr bool kNumbers = kIsOneOf<T, samegrad::kNumbers>;
template <class T>
inline constexpr bool kSigned = kIsOneOf<T, samegrad::kSigned>;
template <class T>
inline constexpr bool kAll = true;
enum class Result { kSame, kBoolResult };
inline constexpr Result kSame = Result::kSame;
inline constexpr Result kBoolResult = Result::kBoolResult;

// Floats go through registers, the last of them filled up with ones, so that every element is
// computed by the same code, which is here once. Nothing is read ahead: y may be x.
template <class T, class Row>
void unary_vec(const void* x, void* y, std::int64_t n) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    store_n(Row::apply(load_n(from + i, n - i, T(1))), to + i, n - i);
  }
}

template <class T, class Row, int a_step, int b_step>
[[gnu::noinline]] void binary_vec_loop(const T* a, const T* b, T* y, std::int64_t n) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  const Vec<T> a_first = *a, b_first = *b;
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Vec<T> u = a_step ? load_n(a + i, n - i, T(1)) : a_first;
    const Vec<T> v = b_step ? load_n(b + i, n - i, T(1)) : b_first;
    store_n(Row::apply(u, v), y + i, n - i);
  }
}

// One by one. y is x or apart from it, never shifted against it.
template <class T, class Y, class Row>
void unary_scalar(const void* x, void* y, std::int64_t n) {
  const T* from = static_cast<const T*>(x);
  Y* to = static_cast<Y*>(y);
  SAMEGRAD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<Y>(Row::apply(from[i]));
}

template <class T, class Y, class Row, int a_step, int b_step>
void binary_scalar_loop(const T* a, const T* b, Y* y, std::int64_t n) {
  const T a_first = *a, b_first = *b;
  SAMEGRAD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<Y>(Row::apply(a_step ? a[i] : a_first, b_step ? b[i] : b_first));
  }
}
// Two fixed arguments have one result, which is copied; this case need not be fast.
template <class T, class Y, class Moving, class LeftFixed, class RightFixed>
SAMEGRAD_INLINE void choose_steps(const void* a, const void* b, void* y, std::int64_t n, int a_step,
                                  int b_step, Moving moving, LeftFixed left_fixed,
                                  RightFixed right_fixed) {
  if (n <= 0) return;
  const T* left = static_cast<const T*>(a);
  const T* right = static_cast<const T*>(b);
  Y* to = static_cast<Y*>(y);
  if (a_step != 0 && b_step != 0) return moving(left, right, to, n);
  if (a_step != 0) return right_fixed(left, right, to, n);
  if (b_step != 0) return left_fixed(left, right, to, n);
  moving(left, right, to, std::int64_t{1});
  for (std::int64_t i = 1; i < n; ++i) to[i] = to[0];
}
template <class T, class Row>
void binary_vec(const void* a, const void* b, void* y, std::int64_t n, int a_step, int b_step) {
  choose_steps<T, T>(a, b, y, n, a_step, b_step, binary_vec_loop<T, Row, 1, 1>,
                     binary_vec_loop<T, Row, 0, 1>, binary_vec_loop<T, Row, 1, 0>);
}
template <class T, class Y, class Row>
void binary_scalar(const void* a, const void* b, void* y, std::int64_t n, int a_step, int b_step) {
  choose_steps<T, Y>(a, b, y, n, a_step, b_step, binary_scalar_loop<T, Y, Row, 1, 1>,
                     binary_scalar_loop<T, Y, Row, 0, 1>, binary_scalar_loop<T, Y, Row, 1, 0>);
}

template <class T, class Row, bool defined, Result result>
constexpr UnaryKernel choose_unary() {
  if constexpr (!defined) {
    return nullptr;
  } else if constexpr (result == kBoolResult) {
    return unary_scalar<T, bool, Row>;
  } else if constexpr (kFloats<T>) {
    return unary_vec<T, Row>;
  } else {
    return unary_scalar<T, T, Row>;
  }
}
template <class T, class Row, bool defined, Result result>
constexpr BinaryKernel choose_binary() {
  if constexpr (!defined) {
    return nullptr;
  } else if constexpr (result == kBoolResult) {
    return binary_scalar<T, bool, Row>;
  } else if constexpr (kFloats<T>) {
    return binary_vec<T, Row>;
  } else {
    return binary_scalar<T, T, Row>;
  }
}

// The functions of one dtype; instantiated in a file of its own, where they take their time.
template <class T>
UnaryKernel unary_of(UnaryFn fn);
template <class T>
BinaryKernel binary_of(BinaryFn fn);

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
