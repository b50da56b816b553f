#include "ops/special_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace samegrad::special {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = 0x1p-53;
constexpr double kPi = std::numbers::pi;
constexpr double kRootOfPi = 1.7724538509055160273;

bool is_whole(double x) {
  return x == std::floor(x);
}

// A number and its derivative with respect to a parameter.
struct Dual {
  double value = 0, slope = 0;

  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend Dual operator/(Dual a, Dual b) {
    const double value = a.value / b.value;
    return {value, (a.slope - value * b.slope) / b.value};
  }
};

bool has_settled(Dual change, Dual whole) {
  return std::abs(change.value) <= kEpsilon * std::abs(whole.value) &&
         std::abs(change.slope) <= kEpsilon * (std::abs(whole.slope) + std::abs(whole.value));
}

constexpr int kMostTerms = 100000;

// x^a exp(-x) / Γ(a). For large a by Stirling's series, as the logarithms of its parts cancel.
Dual gamma_factor(double a, double x) {
  double value;
  if (a > 100) {
    const double d = (x - a) / a, inverse = 1 / (a * a);
    const double rest = (1.0 / 12 - inverse * (1.0 / 360 - inverse * (1.0 / 1260))) / a;
    const double exponent = std::abs(d) < 0.5 ? std::log1p(d) - d : std::log(x / a) - d;
    value = std::sqrt(a / (2 * kPi)) * std::exp(a * exponent - rest);
  } else {
    value = std::exp(a * std::log(x) - x - log_gamma(a));
  }
  return {value, value * (std::log(x) - digamma(a))};
}

// P(a, x) of small x: a series of positive terms (Abramowitz and Stegun 6.5.29).
Dual lower_series(double a, double x) {
  Dual term{1, 0}, sum{1, 0};
  for (int n = 1; n < kMostTerms; ++n) {
    term = term * Dual{x, 0} / Dual{a + n, 1};
    sum = sum + term;
    if (has_settled(term, sum)) break;
  }
  return gamma_factor(a, x) / Dual{a, 1} * sum;
}

// Q(a, x) of large x: a continued fraction (6.5.31), by the method of Lentz.
Dual upper_fraction(double a, double x) {
  Dual b{x + 1 - a, -1}, c{1e300, 0}, d = Dual{1, 0} / b, whole = d;
  for (int i = 1; i < kMostTerms; ++i) {
    const Dual above = Dual{double(-i), 0} * Dual{i - a, -1};
    b = b + Dual{2, 0};
    d = Dual{1, 0} / (above * d + b);
    c = b + above / c;
    const Dual factor = c * d;
    whole = whole * factor;
    if (has_settled({factor.value - 1, factor.slope}, {1, 0})) break;
  }
  return gamma_factor(a, x) * whole;
}

// P, or Q by what it is computed from; false if an argument has none.
bool incomplete(double a, double x, Dual& p, bool& is_upper) {
  if (!(a > 0) || !(x >= 0) || (std::isinf(a) && std::isinf(x))) return false;
  is_upper = std::isinf(x) || (x > 1 && x > a);
  if (x == 0 || std::isinf(a) || std::isinf(x))
    p = {};
  else
    p = is_upper ? upper_fraction(a, x) : lower_series(a, x);
  return true;
}

// The y > 0 with erfc(y) = z, of z in (0, 0.5): Newton's steps on logarithms.
double erfc_inverse_of_tail(double z) {
  const double logarithm = std::log(z);
  double y = std::sqrt(-logarithm - 0.5 * std::log(std::max(-logarithm, 0.5) * kPi) * 0.9);
  if (!(y > 0)) y = 0.5;
  for (int i = 0; i < 6; ++i) {
    // erfc(y) exp(y²), also where the factors leave the range (Abramowitz and Stegun 7.1.23).
    const double tail = std::erfc(y), s = 1 / (2 * y * y);
    const double series = 1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s * (1 - 9 * s))));
    const double scaled = y < 26 ? tail * std::exp(y * y) : series / (y * kRootOfPi);
    const double log_tail = y < 26 ? std::log(tail) : std::log(scaled) - y * y;
    y += (log_tail - logarithm) * scaled * kRootOfPi / 2;
  }
  return y;
}

}  // namespace

double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double digamma(double x) {
  if (x == 0) return std::signbit(x) ? kInfinity : -kInfinity;
  if (std::isnan(x) || (x < 0 && is_whole(x))) return kNan;
  if (x < 0) return digamma(1 - x) - kPi / std::tan(kPi * (x - std::floor(x)));
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  const double s = 1 / (x * x);
  const double series =
      s * (1.0 / 12 - s * (1.0 / 120 -
                           s * (1.0 / 252 -
                                s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
  return sum + std::log(x) - 0.5 / x - series;
}

// The sum of Euler and Maclaurin.
double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) return kNan;
  if (s == 1) return kInfinity;
  if (q <= 0 && is_whole(q)) return kInfinity;
  if (q <= 0 && !is_whole(s)) return kNan;
  if (q < -1e5) return kNan;  // too many terms
  double sum = 0;
  double at = q;
  for (; at <= 10 + s; at += 1) {
    const double term = std::pow(at, -s);
    sum += term;
    if (at > 1 && term < kEpsilon * kEpsilon * std::abs(sum)) return sum;
  }
  const double power = std::pow(at, -s);
  sum += power * at / (s - 1) + 0.5 * power;
  // Bernoulli's numbers by factorials: B₂ₖ / (2k)!.
  constexpr double kTerms[] = {1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000,
                               1.0 / 74724249600,
                               -3617.0 / 10670622842880000,
                               43867.0 / 5109094217170944000};
  double factor = s * power / at;
  for (int k = 0; k < 9; ++k) {
    const double term = factor * kTerms[k];
    sum += term;
    if (std::abs(term) < kEpsilon * std::abs(sum)) break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (at * at);
  }
  return sum;
}

double polygamma(double n, double x) {
  if (!(n >= 0) || !is_whole(n)) return kNan;
  if (n == 0) return digamma(x);
  const double size = std::exp(log_gamma(n + 1)) * zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -size : size;
}

double erfc(double x) {
  return std::erfc(x);
}

double erfinv(double x) {
  const double size = std::abs(x);
  if (!(size <= 1)) return kNan;
  if (size == 1) return std::copysign(kInfinity, x);
  if (size > 0.5) return std::copysign(erfc_inverse_of_tail(1 - size), x);
  // A first guess (Winitzki, 2008), which Halley's steps make exact.
  const double logarithm = std::log1p(-x * x), half = 2 / (kPi * 0.147) + logarithm / 2;
  double y = std::sqrt(std::sqrt(half * half - logarithm / 0.147) - half);
  if (size < 1e-8) return x * (kRootOfPi / 2);
  for (int i = 0; i < 3; ++i) {
    const double step = (std::erf(y) - size) * std::exp(y * y) * kRootOfPi / 2;
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  if (p > 0.25 && p < 0.75) return std::numbers::sqrt2 * erfinv(2 * (p - 0.5));
  const double tail = erfc_inverse_of_tail(p < 0.5 ? 2 * p : 2 * (1 - p));
  return std::numbers::sqrt2 * (p < 0.5 ? -tail : tail);
}

namespace {

// exp(-x) Iᵥ(x) of v = 0 and 1: a series of positive terms, or, of large x, Hankel's expansion.
double scaled_bessel(int v, double x) {
  if (x < 20) {
    const double s = x * x / 4;
    double term = 1, sum = 1;
    for (int k = 1; term > kEpsilon * sum; ++k) sum += term *= s / (k * double(k + v));
    return sum * std::exp(-x) * (v == 1 ? x / 2 : 1.0);
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 40 && std::abs(term) > kEpsilon; ++k) {
    const double odd = 2 * k - 1;
    sum += term *= -(4 * v * v - odd * odd) / (k * 8 * x);
  }
  return sum / std::sqrt(2 * kPi * x);
}

}  // namespace

double bessel_i0e(double x) {
  if (std::isinf(x)) return 0;
  return std::isnan(x) ? x : scaled_bessel(0, std::abs(x));
}

double bessel_i1e(double x) {
  if (std::isinf(x)) return std::copysign(0.0, x);
  return std::isnan(x) ? x : std::copysign(scaled_bessel(1, std::abs(x)), x);
}

double igamma(double a, double x) {
  Dual p;
  bool is_upper = false;
  if (!incomplete(a, x, p, is_upper)) return kNan;
  return is_upper ? 1 - p.value : p.value;
}

double igammac(double a, double x) {
  Dual p;
  bool is_upper = false;
  if (!incomplete(a, x, p, is_upper)) return kNan;
  return is_upper ? p.value : 1 - p.value;
}

double igamma_grad_a(double a, double x) {
  Dual p;
  bool is_upper = false;
  if (!incomplete(a, x, p, is_upper)) return kNan;
  return is_upper ? -p.slope : p.slope;
}

namespace {

// The continued fraction of Abramowitz and Stegun 26.5.8, by the method of Lentz.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto not_zero = [](double y) { return std::abs(y) < kTiny ? kTiny : y; };
  double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), whole = d;
  for (int m = 1; m < kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / not_zero(1 + even * d);
    c = not_zero(1 + even / c);
    whole *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / not_zero(1 + odd * d);
    c = not_zero(1 + odd / c);
    const double factor = c * d;
    whole *= factor;
    if (std::abs(factor - 1) < kEpsilon) break;
  }
  return whole;
}

}  // namespace

double betainc(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1)) return kNan;
  if (x == 0 || x == 1) return x;
  const double factor = std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) +
                                 b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return factor * beta_fraction(a, b, x) / a;
  return 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace samegrad::special
