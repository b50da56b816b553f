// The functions reductions fold with, on registers and on single elements.
#pragma once

#include "kernels/functions.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

struct SumOp {
  template <class T>
  static constexpr T neutral = T(0);
  template <class X>
  static SAMEGRAD_INLINE X fold(X a, X b) {
    return static_cast<X>(a + b);
  }
};
struct ProdOp {
  template <class T>
  static constexpr T neutral = T(1);
  template <class X>
  static SAMEGRAD_INLINE X fold(X a, X b) {
    return static_cast<X>(a * b);
  }
};
template <class T>
inline constexpr T kLeast = std::numeric_limits<T>::has_infinity
                                ? static_cast<T>(-std::numeric_limits<T>::infinity())
                                : std::numeric_limits<T>::lowest();
template <class T>
inline constexpr T kGreatest = std::numeric_limits<T>::has_infinity
                                   ? std::numeric_limits<T>::infinity()
                                   : std::numeric_limits<T>::max();
struct MaxOp {
  template <class T>
  static constexpr T neutral = kLeast<T>;
  template <class X>
  static SAMEGRAD_INLINE X fold(X a, X b) {
    return maximum(a, b);
  }
};
struct MinOp {
  template <class T>
  static constexpr T neutral = kGreatest<T>;
  template <class X>
  static SAMEGRAD_INLINE X fold(X a, X b) {
    return minimum(a, b);
  }
};
struct AnyOp {
  template <class T>
  static constexpr T neutral = T(0);
  template <class X>
  static SAMEGRAD_INLINE X fold(X a, X b) {
    return static_cast<X>(a | b);
  }
};
struct AllOp {
  template <class T>
  static constexpr T neutral = T(1);
  template <class X>
  static SAMEGRAD_INLINE X fold(X a, X b) {
    return static_cast<X>(a & b);
  }
};

// f.operator()<T, Op>() where the reduction is defined for the dtype, else a null kernel.
template <class Kernel, class T, class F>
Kernel with_number_op(ReduceFn fn, F f) {
  static_assert(kSumsInPlace<T>, "what is folded so far is kept where the elements are");
  switch (fn) {
    case ReduceFn::kSum:
      return f.template operator()<T, SumOp>();
    case ReduceFn::kProd:
      return f.template operator()<T, ProdOp>();
    case ReduceFn::kMax:
      return f.template operator()<T, MaxOp>();
    case ReduceFn::kMin:
      return f.template operator()<T, MinOp>();
    default:
      return nullptr;
  }
}
template <class Kernel, class F>
Kernel with_bool_op(ReduceFn fn, F f) {
  if (fn == ReduceFn::kAny) return f.template operator()<std::uint8_t, AnyOp>();
  if (fn == ReduceFn::kAll) return f.template operator()<std::uint8_t, AllOp>();
  return nullptr;
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
