// exp, log, sin, … of a Vec: the same bits for an element wherever it is.
//
// Ranges are reduced with the constant split in parts short enough that the products are exact;
// polynomials are Chebyshev fits of the remainder. Errors are below 4 units in the last place (see
// tests/cpp/kernels/test_maths.cpp), special values as in C's Annex F.
#pragma once

#include <cmath>

#include "kernels/large_angle.h"
#include "kernels/maths_constants.h"
#include "kernels/simd.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
SAMEGRAD_INLINE Vec<T> absolute(Vec<T> x) {
  return Vec<T>::from_bits(x.bits() & std::numeric_limits<Bits<T>>::max());
}
template <class T>
SAMEGRAD_INLINE Vec<T> copy_sign(Vec<T> magnitude, Vec<T> sign) {
  constexpr Bits<T> kSign = std::numeric_limits<Bits<T>>::min();
  return Vec<T>::from_bits((magnitude.bits() & ~kSign) | (sign.bits() & kSign));
}
// NaN if either is; a where they are equal, so that bits are fixed.
template <class T>
SAMEGRAD_INLINE Vec<T> maximum(Vec<T> a, Vec<T> b) {
  return select(b != b, b, max_or_second(b, a));
}
template <class T>
SAMEGRAD_INLINE Vec<T> minimum(Vec<T> a, Vec<T> b) {
  return select(b != b, b, min_or_second(b, a));
}

// c[0] + c[1] x + c[2] x² + …
template <class T, int n>
SAMEGRAD_INLINE Vec<T> polynomial(const T (&c)[n], Vec<T> x) {
  Vec<T> y = c[n - 1];
  for (int i = n - 2; i >= 0; --i) y = fma(y, x, Vec<T>(c[i]));
  return y;
}

// An integer as float and as integer: adding kMagic leaves it in the last bits.
template <class T>
struct Whole {
  Vec<T> value;
  typename Vec<T>::Int bits;
};
template <class T>
SAMEGRAD_INLINE Whole<T> nearest(Vec<T> x) {
  const Vec<T> shifted = x + Vec<T>(Maths<T>::kMagic);
  return {shifted - Vec<T>(Maths<T>::kMagic), shifted.bits() - Vec<T>(Maths<T>::kMagic).bits()};
}
template <class T>
SAMEGRAD_INLINE Vec<T> whole_to_float(typename Vec<T>::Int n) {
  return Vec<T>::from_bits(n + Vec<T>(Maths<T>::kMagic).bits()) - Vec<T>(Maths<T>::kMagic);
}
template <class T>
SAMEGRAD_INLINE Vec<T> power_of_two(typename Vec<T>::Int n) {
  return Vec<T>::from_bits((n + Maths<T>::kBias) << Maths<T>::kMantissaBits);
}

// exp(x) = (1 + tail) * low * high, where low and high are powers of two: one alone could overflow
// where the product does not.
template <class T>
struct ExpParts {
  Vec<T> n, tail, low, high;
};
template <class T>
SAMEGRAD_INLINE ExpParts<T> exp_parts(Vec<T> x) {
  using M = Maths<T>;
  x = max_or_second(Vec<T>(M::kExpLow), x);  // NaN stays
  x = min_or_second(Vec<T>(M::kExpHigh), x);
  const Whole<T> n = nearest(x * Vec<T>(M::kInverseLn2));
  const Vec<T> r = fma(n.value, -M::kLn2Low, fma(n.value, -M::kLn2High, x));
  const Whole<T> half = nearest(n.value * Vec<T>(T(0.5)));
  return {n.value, fma(r * r, polynomial(M::kExp, r), r), power_of_two<T>(half.bits),
          power_of_two<T>(n.bits - half.bits)};
}

template <class T>
SAMEGRAD_INLINE Vec<T> exp(Vec<T> x) {
  const ExpParts<T> e = exp_parts(x);
  return (e.tail + Vec<T>(T(1))) * e.low * e.high;
}

template <class T>
SAMEGRAD_INLINE Vec<T> expm1(Vec<T> x) {
  const ExpParts<T> e = exp_parts(x);
  const Vec<T> one = T(1), scale = e.low * e.high;
  const Vec<T> large = (e.tail + one) * e.low * e.high;  // the 1 no longer counts
  const Vec<T> y = select(e.n > Vec<T>(T(60)), large, fma(scale, e.tail, scale - one));
  return select(x == Vec<T>(T(0)), x, y);
}

// log(x) for positive, finite x, not denormal.
template <class T>
SAMEGRAD_INLINE Vec<T> log_normal(Vec<T> x, Vec<T> exponent) {
  using M = Maths<T>;
  const typename Vec<T>::Int sqrt_half = Vec<T>(M::kSqrtHalf).bits();
  const typename Vec<T>::Int shifted = x.bits() + (Vec<T>(T(1)).bits() - sqrt_half);
  const Vec<T> k = whole_to_float<T>((shifted >> M::kMantissaBits) - M::kBias) + exponent;
  const Vec<T> f = Vec<T>::from_bits((shifted & M::kMantissaMask) + sqrt_half) - Vec<T>(T(1));
  const Vec<T> s = f / (f + Vec<T>(T(2))), z = s * s;
  const Vec<T> r = z * polynomial(M::kLog, z);
  const Vec<T> half_square = Vec<T>(T(0.5)) * f * f;
  const Vec<T> tail = s * (half_square + r) + k * Vec<T>(M::kLn2Low);
  return k * Vec<T>(M::kLn2High) - ((half_square - tail) - f);
}

template <class T>
SAMEGRAD_INLINE Vec<T> log(Vec<T> x) {
  using M = Maths<T>;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const Mask<T> tiny = x < Vec<T>(std::numeric_limits<T>::min());
  const Vec<T> scaled = select(tiny, x * Vec<T>(M::kDenormalScale), x);
  Vec<T> y = log_normal(scaled, select(tiny, Vec<T>(-M::kDenormalExponent), Vec<T>(T(0))));
  y = select(x < Vec<T>(kInfinity), y, x);  // infinity and NaN
  y = select(x == Vec<T>(T(0)), Vec<T>(-kInfinity), y);
  return select(x < Vec<T>(T(0)), Vec<T>(std::numeric_limits<T>::quiet_NaN()), y);
}

// log(1 + x) for x > -1, neither infinite nor so small that it is x; NaN stays.
template <class T>
SAMEGRAD_INLINE Vec<T> log1p_usual(Vec<T> x) {
  const Vec<T> one = T(1), u = x + one;
  const Vec<T> lost = x - (u - one);  // what rounding took from 1 + x
  return log_normal(u, Vec<T>(T(0))) + lost / u;
}
template <class T>
SAMEGRAD_INLINE Vec<T> log1p(Vec<T> x) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const Vec<T> one = T(1), minus_one = T(-1);
  Vec<T> y = select(x + one == one, x, log1p_usual(x));
  y = select(x == Vec<T>(kInfinity), x, y);
  y = select(x == minus_one, Vec<T>(-kInfinity), y);
  return select(x < minus_one, Vec<T>(std::numeric_limits<T>::quiet_NaN()), y);
}

template <class T>
SAMEGRAD_INLINE Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> e = exp(-absolute(x)), one = T(1);
  return select(x >= Vec<T>(T(0)), one, e) / (e + one);
}
template <class T>
SAMEGRAD_INLINE Vec<T> softplus(Vec<T> x) {
  const Vec<T> e = exp(-absolute(x)), one = T(1);
  return maximum(x, Vec<T>(T(0))) + select(e + one == one, e, log1p_usual(e));
}
template <class T>
SAMEGRAD_INLINE Vec<T> tanh(Vec<T> x) {
  const Vec<T> e = expm1(Vec<T>(T(-2)) * absolute(x));
  return copy_sign(-e / (e + Vec<T>(T(2))), x);
}
// exp(|x|) / 2 for |x| so large that exp(-|x|) no longer counts, without early overflow.
template <class T>
SAMEGRAD_INLINE Vec<T> half_exp(Vec<T> x) {
  const ExpParts<T> e = exp_parts(absolute(x));
  return (e.tail + Vec<T>(T(1))) * (e.low * Vec<T>(T(0.5))) * e.high;
}
template <class T>
SAMEGRAD_INLINE Vec<T> sinh(Vec<T> x) {
  const Vec<T> e = expm1(absolute(x)), half = T(0.5);
  const Vec<T> y = half * (e + e / (e + Vec<T>(T(1))));
  return copy_sign(select(absolute(x) > Vec<T>(T(25)), half_exp(x), y), x);
}
template <class T>
SAMEGRAD_INLINE Vec<T> cosh(Vec<T> x) {
  const Vec<T> e = half_exp(x);
  return e + Vec<T>(T(0.25)) / e;
}

// x = quarter * π/2 + rest, |rest| <= π/4; the quarter but for whole turns.
template <class T>
struct Angle {
  Vec<T> rest;
  typename Vec<T>::Int quarter;
};
// Lanes beyond kTrigLimit, which are rare, in integers.
template <class T>
[[gnu::noinline]] Angle<T> with_large_angles(Vec<T> x, Angle<T> angle) {
  for (int i = 0; i < Vec<T>::kLanes; ++i) {
    const double size = std::abs(double(x.raw[i]));
    if (!(size > Maths<T>::kTrigLimit)) continue;
    const LargeAngle exact = reduce_large(size);
    const bool is_negative = x.raw[i] < 0;
    angle.rest.raw[i] = static_cast<T>(is_negative ? -exact.rest : exact.rest);
    angle.quarter[i] = is_negative ? -exact.quarter : exact.quarter;
  }
  return angle;
}
template <class T>
struct Reduced {
  Vec<T> sine, cosine;  // of the rest
  typename Vec<T>::Int quarter;
};
template <class T>
SAMEGRAD_INLINE Reduced<T> reduce_angle(Vec<T> x) {
  using M = Maths<T>;
  const Whole<T> q = nearest(x * Vec<T>(M::kTwoOverPi));
  Angle<T> angle = {x, q.bits};
  for (const T part : M::kHalfPi) angle.rest = fma(q.value, Vec<T>(-part), angle.rest);
  if (any(absolute(x) > Vec<T>(M::kTrigLimit))) [[unlikely]]
    angle = with_large_angles(x, angle);
  const Vec<T> r = angle.rest, z = r * r;
  const Vec<T> cosine = fma(z * z, polynomial(M::kCos, z), Vec<T>(T(1)) - Vec<T>(T(0.5)) * z);
  return {fma(r * z, polynomial(M::kSin, z), r), cosine, angle.quarter};
}
// Sine of an angle `turns` quarters further.
template <class T>
SAMEGRAD_INLINE Vec<T> sine_after(const Reduced<T>& a, Bits<T> turns) {
  const typename Vec<T>::Int quarter = a.quarter + turns;
  const Mask<T> odd = {(quarter & 1) != 0}, negative = {(quarter & 2) != 0};
  const Vec<T> y = select(odd, a.cosine, a.sine);
  return select(negative, -y, y);
}

template <class T>
SAMEGRAD_INLINE Vec<T> sin(Vec<T> x) {
  return select(x == Vec<T>(T(0)), x, sine_after(reduce_angle(x), Bits<T>(0)));
}
template <class T>
SAMEGRAD_INLINE Vec<T> cos(Vec<T> x) {
  return sine_after(reduce_angle(x), Bits<T>(1));
}
template <class T>
SAMEGRAD_INLINE Vec<T> tan(Vec<T> x) {
  const Reduced<T> a = reduce_angle(x);
  const Vec<T> y = sine_after(a, Bits<T>(0)) / sine_after(a, Bits<T>(1));
  return select(x == Vec<T>(T(0)), x, y);
}

// atan(x) for x >= 0: through tan(π/8) and 1 the argument comes below tan(π/8).
template <class T>
SAMEGRAD_INLINE Vec<T> atan_positive(Vec<T> x) {
  using M = Maths<T>;
  const Vec<T> one = T(1), zero = T(0);
  const Mask<T> large = x > Vec<T>(M::kTan3Pi8), middle = x > Vec<T>(M::kTanPi8);
  const Vec<T> top = select(large, -one, select(middle, x - one, x));
  const Vec<T> bottom = select(large, x, select(middle, x + one, one));
  const Vec<T> t = top / bottom, z = t * t;
  const Vec<T> base = select(large, Vec<T>(M::kPi / 2), select(middle, Vec<T>(M::kPi / 4), zero));
  const Vec<T> low =
      select(large, Vec<T>(M::kPiLow / 2), select(middle, Vec<T>(M::kPiLow / 4), zero));
  return base + (fma(t * z, polynomial(M::kAtan, z), t) + low);
}
template <class T>
SAMEGRAD_INLINE Vec<T> atan(Vec<T> x) {
  return copy_sign(atan_positive(absolute(x)), x);
}
template <class T>
SAMEGRAD_INLINE Vec<T> asin(Vec<T> x) {
  const Vec<T> one = T(1), a = absolute(x);
  return copy_sign(atan_positive(a / sqrt((one - a) * (one + a))), x);
}
template <class T>
SAMEGRAD_INLINE Vec<T> acos(Vec<T> x) {
  const Vec<T> one = T(1);
  return Vec<T>(T(2)) * atan_positive(sqrt((one - x) / (one + x)));
}
template <class T>
SAMEGRAD_INLINE Vec<T> atan2(Vec<T> y, Vec<T> x) {
  using M = Maths<T>;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const Vec<T> ay = absolute(y), ax = absolute(x), zero = T(0);
  const Mask<T> steep = ay > ax;
  const Vec<T> small = select(steep, ax, ay), large = select(steep, ay, ax);
  Vec<T> t = small / large;
  t = select(large == zero, zero, t);
  t = select(small == Vec<T>(kInfinity), Vec<T>(T(1)), t);
  t = atan_positive(t);
  t = select(steep, Vec<T>(M::kPi / 2) - (t - Vec<T>(M::kPiLow / 2)), t);
  const Mask<T> left = {x.bits() < 0};
  t = select(left, Vec<T>(M::kPi) - (t - Vec<T>(M::kPiLow)), t);
  t = copy_sign(t, y);
  return select((x != x) | (y != y), x + y, t);
}

template <class T>
SAMEGRAD_INLINE Vec<T> asinh(Vec<T> x) {
  using M = Maths<T>;
  const Vec<T> a = absolute(x), one = T(1), square = a * a;
  const Vec<T> near = log1p(a + square / (one + sqrt(square + one)));
  const Vec<T> far = log(a) + Vec<T>(M::kLn2);
  return copy_sign(select(a > Vec<T>(M::kSquareLimit), far, near), x);
}
template <class T>
SAMEGRAD_INLINE Vec<T> acosh(Vec<T> x) {
  using M = Maths<T>;
  const Vec<T> t = x - Vec<T>(T(1));
  const Vec<T> near = log1p(t + sqrt(t * (t + Vec<T>(T(2)))));
  const Vec<T> y = select(x > Vec<T>(M::kSquareLimit), log(x) + Vec<T>(M::kLn2), near);
  return select(x < Vec<T>(T(1)), Vec<T>(std::numeric_limits<T>::quiet_NaN()), y);
}
template <class T>
SAMEGRAD_INLINE Vec<T> atanh(Vec<T> x) {
  const Vec<T> a = absolute(x), one = T(1);
  return copy_sign(Vec<T>(T(0.5)) * log1p((a + a) / (one - a)), x);
}

// Near 0 a polynomial in x², beyond 1 one minus exp(-x²) times a polynomial in 1 / (2 + |x|).
template <class T>
SAMEGRAD_INLINE Vec<T> erf(Vec<T> x) {
  using M = Maths<T>;
  const Vec<T> one = T(1), square = x * x;
  const Vec<T> near = x * polynomial(M::kErf, square);
  Vec<T> a = absolute(x);
  const Mask<T> inside = a < one;
  a = select(a > Vec<T>(M::kErfLimit), Vec<T>(M::kErfLimit), a);
  const Vec<T> far = one - exp(-(a * a)) * polynomial(M::kErfc, one / (a + Vec<T>(T(2))));
  return select(inside, near, copy_sign(far, x));
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
