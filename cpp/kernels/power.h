// Powers: the logarithm and the exponential of a number in two parts.
//
// The logarithm of x has twice the precision of a double: a power multiplies its error by up to
// 745. Products are exact by Dekker's splitting (Numerische Mathematik 18, 1971), which needs no
// fused multiply-add. Errors are below 1.5 units in the last place.
#pragma once

#include "kernels/maths.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// high + low, without rounding: |low| is at most half a unit in the last place of high.
struct VecPair {
  Vec<double> high, low;
};

// The sum where |a| >= |b|, which takes fewer operations.
SAMEGRAD_INLINE VecPair sum_of_ordered(Vec<double> a, Vec<double> b) {
  const Vec<double> sum = a + b;
  return {sum, b - (sum - a)};
}
SAMEGRAD_INLINE VecPair sum_of(Vec<double> a, Vec<double> b) {
  const Vec<double> sum = a + b, added = sum - a;
  return {sum, (a - (sum - added)) + (b - added)};
}
// The upper 26 bits and the others.
SAMEGRAD_INLINE VecPair halves_of(Vec<double> a) {
  const Vec<double> scaled = a * Vec<double>(134217729.0);  // 2^27 + 1
  const Vec<double> high = scaled - (scaled - a);
  return {high, a - high};
}
// The product of factors below 2^995. Its low part is exact unless it is denormal.
SAMEGRAD_INLINE VecPair product_of(Vec<double> a, Vec<double> b) {
  const Vec<double> product = a * b;
  const VecPair x = halves_of(a), y = halves_of(b);
  const Vec<double> rest = x.high * y.high - product + x.high * y.low + x.low * y.high;
  return {product, x.low * y.low + rest};
}

// The logarithm of a positive, finite x: a power of two and m in [√½, √2), whose logarithm is
// 2 artanh(s) with s = (m - 1) / (m + 1). Two terms of the series of s have a low part.
SAMEGRAD_INLINE VecPair log_in_two(Vec<double> x) {
  using M = Maths<double>;
  const Vec<double> one = 1.0;
  const Mask<double> tiny = x < Vec<double>(std::numeric_limits<double>::min());
  x = select(tiny, x * Vec<double>(M::kDenormalScale), x);
  const Vec<double>::Int sqrt_half = Vec<double>(M::kSqrtHalf).bits();
  const Vec<double>::Int shifted = x.bits() + (one.bits() - sqrt_half);
  const Vec<double> k = whole_to_float<double>((shifted >> M::kMantissaBits) - M::kBias) +
                        select(tiny, Vec<double>(-M::kDenormalExponent), Vec<double>(0.0));
  const Vec<double> m = Vec<double>::from_bits((shifted & M::kMantissaMask) + sqrt_half);

  const Vec<double> top = m - one, bottom = m + one, bottom_low = m - (bottom - one);
  const Vec<double> s = top / bottom;
  const VecPair back = product_of(s, bottom);
  const Vec<double> s_low = ((top - back.high) - back.low - s * bottom_low) / bottom;
  VecPair square = product_of(s, s);
  square.low = square.low + Vec<double>(2.0) * s * s_low;
  // u = s² (2/3 + s² (2/5 + …)), and the logarithm is s (2 + u).
  VecPair inner =
      sum_of_ordered(Vec<double>(M::kTwoThirds), square.high * polynomial(M::kArtanh, square.high));
  inner.low = inner.low + Vec<double>(M::kTwoThirdsLow);
  const VecPair u = product_of(square.high, inner.high);
  const Vec<double> u_low = u.low + square.high * inner.low + square.low * inner.high;
  VecPair sum = sum_of_ordered(Vec<double>(2.0), u.high);
  sum.low = sum.low + u_low;
  const VecPair log = product_of(s, sum.high);
  const Vec<double> log_low = log.low + s * sum.low + s_low * sum.high;

  const VecPair whole = sum_of_ordered(k * Vec<double>(M::kLn2High), log.high);
  const Vec<double> low = whole.low + log_low + k * Vec<double>(M::kLn2Low);
  return sum_of_ordered(whole.high, low);
}

// exp(x.high + x.low).
SAMEGRAD_INLINE Vec<double> exp_of_two(VecPair x) {
  using M = Maths<double>;
  const Vec<double> one = 1.0, beyond = 800.0;
  const Mask<double> inside = absolute(x.high) < beyond;
  Vec<double> high = max_or_second(Vec<double>(M::kExpLow), x.high);  // NaN stays
  high = min_or_second(Vec<double>(M::kExpHigh), high);
  const Vec<double> low = select(inside, x.low, Vec<double>(0.0));
  const Whole<double> n = nearest(high * Vec<double>(M::kInverseLn2));
  const Vec<double> rest = high - n.value * Vec<double>(M::kLn2High);  // exact
  const VecPair r = sum_of(rest, low - n.value * Vec<double>(M::kLn2Low));
  const Vec<double> curve = r.high * r.high * polynomial(M::kExp, r.high);
  const Vec<double> tail = r.high + (r.low + r.low * r.high + curve);
  const Whole<double> half = nearest(n.value * Vec<double>(0.5));
  return (tail + one) * power_of_two<double>(half.bits) * power_of_two<double>(n.bits - half.bits);
}

// The power if an argument is NaN or infinite, or if x is 0 (C's Annex F).
inline double power_at_ends(double x, double y) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double size = x < 0 ? -x : x;
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return x + y;
  if (y - y != 0) {  // infinite
    if (size == 1) return 1;
    return (size > 1) == (y > 0) ? kInfinity : 0;
  }
  const double result = (size == 0) == (y < 0) ? kInfinity : 0;
  const bool is_odd = std::floor(y) == y && std::floor(y / 2) != y / 2;
  return is_odd ? std::copysign(result, x) : result;
}

// `of_sizes`, a power of |x|, with its sign; NaN where x is below 0 and y is not an integer.
template <class T>
SAMEGRAD_INLINE Vec<T> power_with_sign(Vec<T> x, Vec<T> y, Vec<T> of_sizes) {
  const Vec<T> zero = T(0), half = y * Vec<T>(T(0.5));
  const Mask<T> even = floor(half) == half, whole = floor(y) == y;
  const Vec<T> of_whole = select(even, of_sizes, -of_sizes);
  const Vec<T> nan = std::numeric_limits<T>::quiet_NaN();
  const Vec<T> of_negative = select(whole, of_whole, nan);
  const Vec<T> z = select(x < zero, of_negative, of_sizes);

  const Vec<T> infinity = std::numeric_limits<T>::infinity();
  const Mask<T> usual = (absolute(x) > zero) & (absolute(x) < infinity) & (absolute(y) < infinity);
  if (!any(~usual)) [[likely]]
    return z;
  return select(usual, z, per_lane(x, y, [](T u, T v) { return T(power_at_ends(u, v)); }));
}

inline Vec<double> power(Vec<double> x, Vec<double> y) {
  // Beyond 1e19 the exponent of each x but 1 and -1 is out of the range of exp.
  const Vec<double> most = 1e19;
  const Vec<double> bounded = min_or_second(most, max_or_second(-most, y));
  const VecPair log = log_in_two(absolute(x));
  VecPair product = product_of(bounded, log.high);
  product.low = product.low + bounded * log.low;
  return power_with_sign(x, y, exp_of_two(product));
}
// In float64, whose error vanishes when rounded.
inline Vec<float> power(Vec<float> x, Vec<float> y) {
  constexpr int kHalf = Vec<double>::kLanes;
  float sizes[2 * kHalf], exponents[2 * kHalf];
  absolute(x).store(sizes);
  y.store(exponents);
  for (int start = 0; start < 2 * kHalf; start += kHalf) {
    double base[kHalf], exponent[kHalf];
    for (int i = 0; i < kHalf; ++i) base[i] = sizes[start + i], exponent[i] = exponents[start + i];
    const Vec<double> z = exp(Vec<double>::load(exponent) * log(Vec<double>::load(base)));
    z.store(base);
    for (int i = 0; i < kHalf; ++i) sizes[start + i] = static_cast<float>(base[i]);
  }
  return power_with_sign(x, y, Vec<float>::load(sizes));
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
