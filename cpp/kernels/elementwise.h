// Loops that apply one function to every element, and the tables of functions per dtype.
#pragma once

#include <cstdint>

#include "kernels/functions.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// The columns `dtypes` and `result` of unary.def and binary.def.
template <class T>
inline constexpr bool kFloats = std::is_floating_point_v<T>;
template <class T>
inline constexpr bool kBools = std::is_same_v<T, bool>;
template <class T>
inline constexpr bool kNumbers = !kBools<T>;
template <class T>
inline constexpr bool kSigned = kNumbers<T> && std::is_signed_v<T>;
template <class T>
inline constexpr bool kAll = true;
enum class Result { kSame, kBoolResult };
inline constexpr Result kSame = Result::kSame;
inline constexpr Result kBoolResult = Result::kBoolResult;

// The last register ends at the last element and overlaps the one before; it is loaded before
// anything is stored, because y may be x. Row::apply appears once, so its code is there once.
template <class T, class Row>
[[gnu::noinline]] void unary_registers(const T* x, T* y, std::int64_t n) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  const std::int64_t last = n - kLanes;
  const Vec<T> end = Vec<T>::load(x + last);
  std::int64_t i = 0;
  while (true) {
    const bool at_end = i >= last;
    const std::int64_t at = at_end ? last : i;
    Row::apply(at_end ? end : Vec<T>::load(x + at)).store(y + at);
    if (at_end) return;
    i += kLanes;
  }
}

template <class T, class Row>
void unary_vec(const void* x, void* y, std::int64_t n) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  if (n >= kLanes) [[likely]] return unary_registers<T, Row>(from, to, n);
  if (n <= 0) return;
  T padded[kLanes];
  load_first(from, n, T(1)).store(padded);
  unary_registers<T, Row>(padded, padded, kLanes);
  store_first(Vec<T>::load(padded), to, n);
}

// An argument with step 0 is a register's worth of copies, read again and again: its mask is 0.
template <class T, class Row>
[[gnu::noinline]] void binary_registers(const T* a, const T* b, T* y, std::int64_t n,
                                        std::int64_t a_mask, std::int64_t b_mask) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  const std::int64_t last = n - kLanes;
  const Vec<T> a_end = Vec<T>::load(a + (last & a_mask)), b_end = Vec<T>::load(b + (last & b_mask));
  std::int64_t i = 0;
  while (true) {
    const bool at_end = i >= last;
    const std::int64_t at = at_end ? last : i;
    const Vec<T> u = at_end ? a_end : Vec<T>::load(a + (at & a_mask));
    const Vec<T> v = at_end ? b_end : Vec<T>::load(b + (at & b_mask));
    Row::apply(u, v).store(y + at);
    if (at_end) return;
    i += kLanes;
  }
}

template <class T, class Row>
void binary_vec(const void* a, const void* b, void* y, std::int64_t n, int a_step, int b_step) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  if (n <= 0) return;
  const T* left = static_cast<const T*>(a);
  const T* right = static_cast<const T*>(b);
  T* to = static_cast<T*>(y);
  T a_copy[kLanes], b_copy[kLanes], y_copy[kLanes];
  if (a_step == 0) {
    Vec<T>(*left).store(a_copy);
    left = a_copy;
  }
  if (b_step == 0) {
    Vec<T>(*right).store(b_copy);
    right = b_copy;
  }
  const std::int64_t a_mask = -std::int64_t{a_step}, b_mask = -std::int64_t{b_step};
  if (n >= kLanes) [[likely]] return binary_registers<T, Row>(left, right, to, n, a_mask, b_mask);
  if (a_step != 0) load_first(left, n, T(1)).store(a_copy);
  if (b_step != 0) load_first(right, n, T(1)).store(b_copy);
  binary_registers<T, Row>(a_copy, b_copy, y_copy, kLanes, 0, 0);
  store_first(Vec<T>::load(y_copy), to, n);
}

// One by one. "ivdep": y is x or apart from it, never shifted against it.
template <class T, class Y, class Row>
void unary_scalar(const void* x, void* y, std::int64_t n) {
  const T* from = static_cast<const T*>(x);
  Y* to = static_cast<Y*>(y);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<Y>(Row::apply(from[i]));
}

template <class T, class Y, class Row, int a_step, int b_step>
void binary_scalar_loop(const T* a, const T* b, Y* y, std::int64_t n) {
  const T a_first = *a, b_first = *b;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<Y>(Row::apply(a_step ? a[i] : a_first, b_step ? b[i] : b_first));
  }
}
template <class T, class Y, class Row>
void binary_scalar(const void* a, const void* b, void* y, std::int64_t n, int a_step, int b_step) {
  if (n <= 0) return;
  const T* left = static_cast<const T*>(a);
  const T* right = static_cast<const T*>(b);
  Y* to = static_cast<Y*>(y);
  if (a_step == 0 && b_step != 0) return binary_scalar_loop<T, Y, Row, 0, 1>(left, right, to, n);
  if (a_step != 0 && b_step == 0) return binary_scalar_loop<T, Y, Row, 1, 0>(left, right, to, n);
  if (a_step != 0) return binary_scalar_loop<T, Y, Row, 1, 1>(left, right, to, n);
  binary_scalar_loop<T, Y, Row, 0, 0>(left, right, to, n);
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
