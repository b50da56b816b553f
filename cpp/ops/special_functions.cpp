#include "ops/special_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/scalar_functions.h"
#include "ops/special_polynomials.h"

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

// c[0] + c[1] u + c[2] u² + …
template <int n>
double polynomial(const double (&c)[n], double u) {
  double y = c[n - 1];
  for (int i = n - 2; i >= 0; --i) y = y * u + c[i];
  return y;
}

// The logarithm of Γ(x) for x from 0.75 to 3. The zeros at 1 and 2 are factors.
double log_gamma_near_two(double x) {
  const double rest = x < 1.5 ? polynomial(kLogGammaLow, (x - 1.125) / 0.375)
                              : polynomial(kLogGammaHigh, (x - 2.25) / 0.75);
  return (x - 1) * (x - 2) * rest;
}

// Exact but for the last bit of the lower part.
scalar::Pair sum_of(scalar::Pair a, double b) {
  const double sum = a.high + b, added = sum - a.high;
  return {sum, (a.high - (sum - added)) + (b - added) + a.low};
}
scalar::Pair sum_of(scalar::Pair a, scalar::Pair b) {
  const scalar::Pair sum = sum_of(a, b.high);
  return {sum.high, sum.low + b.low};
}
// factor * log(x)
scalar::Pair times_log(double factor, double x) {
  const scalar::Pair logarithm = scalar::log_in_two(x);
  const scalar::Pair product = scalar::product_of(factor, logarithm.high);
  return {product.high, product.low + factor * logarithm.low};
}

// The logarithm of Γ(x) of x > 0, to be added to others: its absolute error counts.
scalar::Pair log_gamma_in_two(double x) {
  if (x < 0.75) return sum_of(times_log(-1, x), log_gamma_near_two(1 + x));
  if (x <= 3) return {log_gamma_near_two(x), 0};
  if (x < 10) {
    double product = 1;
    for (; x > 3; product *= x) x -= 1;
    return sum_of(times_log(1, product), log_gamma_near_two(x));
  }
  if (x > 1e18) return {x * (scalar::log(x) - 1), 0};
  // Stirling's series (Abramowitz and Stegun 6.1.41).
  const double s = 1 / (x * x);
  const double series =
      1.0 / 12 -
      s * (1.0 / 360 -
           s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * (691.0 / 360360 - s / 156)))));
  constexpr double kHalfLogOfTwoPi = 0.91893853320467274178;
  const scalar::Pair without = sum_of(times_log(x - 0.5, x), -x);
  return sum_of(without, {kHalfLogOfTwoPi, series / x});
}
double log_gamma_of_positive(double x) {
  const scalar::Pair y = log_gamma_in_two(x);
  return y.high + y.low;
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

constexpr int kMaxTerms = 100000;

// x^a exp(-x) / Γ(a). For large a by Stirling's series, as the logarithms of its parts cancel.
Dual gamma_factor(double a, double x) {
  double value;
  if (a > 1e6) {
    const double d = (x - a) / a, inverse = 1 / (a * a);
    const double rest = (1.0 / 12 - inverse * (1.0 / 360 - inverse * (1.0 / 1260))) / a;
    const double exponent = std::abs(d) < 0.5 ? scalar::log1p(d) - d : scalar::log(x / a) - d;
    value = std::sqrt(a / (2 * kPi)) * scalar::exp(a * exponent - rest);
  } else {
    const scalar::Pair gamma = log_gamma_in_two(a);
    const scalar::Pair power = sum_of(times_log(a, x), -x);
    value = scalar::exp_of_two(sum_of(power, {-gamma.high, -gamma.low}));
  }
  return {value, value * (scalar::log(x) - digamma(a))};
}

// P(a, x) of small x: a series of positive terms (Abramowitz and Stegun 6.5.29).
Dual lower_series(double a, double x) {
  Dual term{1, 0}, sum{1, 0};
  for (int n = 1; n < kMaxTerms; ++n) {
    term = term * Dual{x, 0} / Dual{a + n, 1};
    sum = sum + term;
    if (has_settled(term, sum)) break;
  }
  return gamma_factor(a, x) / Dual{a, 1} * sum;
}

// Q(a, x) of large x: a continued fraction (6.5.31), by the method of Lentz.
Dual upper_fraction(double a, double x) {
  Dual b{x + 1 - a, -1}, c{1e300, 0}, d = Dual{1, 0} / b, whole = d;
  for (int i = 1; i < kMaxTerms; ++i) {
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
  const double logarithm = scalar::log(z);
  double y = std::sqrt(-logarithm - 0.5 * scalar::log(std::max(-logarithm, 0.5) * kPi) * 0.9);
  if (!(y > 0)) y = 0.5;
  for (int i = 0; i < 6; ++i) {
    // erfc(y) exp(y²), also where the factors leave the range (Abramowitz and Stegun 7.1.23).
    const double tail = erfc(y), s = 1 / (2 * y * y);
    const double series = 1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s * (1 - 9 * s))));
    const double scaled = y < 26 ? tail * scalar::exp(y * y) : series / (y * kRootOfPi);
    const double log_tail = y < 26 ? scalar::log(tail) : scalar::log(scaled) - y * y;
    const double step = (log_tail - logarithm) * scaled * kRootOfPi / 2;
    y += step;
    if (std::abs(step) < 1e-9 * y) break;  // the next step is below the last bit
  }
  return y;
}

}  // namespace

double erfc(double x) {
  if (std::isnan(x)) return x;
  if (x < 0.5) return x > -0.5 ? 1 - scalar::erf(x) : 2 - erfc(-x);
  if (x > 30) return 0;
  const double t = (x - 3) / (x + 3);
  const scalar::Pair square = scalar::product_of(x, x);
  const double size = scalar::exp_of_two({-square.high, -square.low});
  return size * (polynomial(kErfc, (t - kErfcCentre) * kErfcScale) / (x + 3));
}

double log_gamma(double x) {
  if (std::isnan(x) || std::isinf(x)) return x * x;
  if (x <= 0 && is_whole(x)) return kInfinity;
  if (x > 0) return log_gamma_of_positive(x);
  if (x > -1e-20) return -scalar::log(-x);
  // Γ(x) Γ(-x) = -π / (x sin(π x)), where integers change the sign alone.
  const double sine = scalar::sin(kPi * (x - std::nearbyint(x)));
  return scalar::log(kPi / std::abs(x * sine)) - log_gamma_of_positive(-x);
}

double digamma(double x) {
  if (x == 0) return std::signbit(x) ? kInfinity : -kInfinity;
  if (std::isnan(x) || (x < 0 && is_whole(x))) return kNan;
  if (x < 0) return digamma(1 - x) - kPi / scalar::tan(kPi * (x - std::floor(x)));
  if (x < 10) {
    double sum = 0;
    for (; x < 1; x += 1) sum -= 1 / x;
    for (; x > 2; sum += 1 / x) x -= 1;
    return sum + (x - kDigammaZero - kDigammaZeroLow) * polynomial(kDigamma, 2 * x - 3);
  }
  const double s = 1 / (x * x);
  const double series =
      s * (1.0 / 12 - s * (1.0 / 120 -
                           s * (1.0 / 252 -
                                s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
  return scalar::log(x) - 0.5 / x - series;
}

// The sum of Euler and Maclaurin.
double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) return kNan;
  if (s == 1) return kInfinity;
  if (q == kInfinity) return 0;
  if (q <= 0 && is_whole(q)) return kInfinity;
  if (q <= 0 && !is_whole(s)) return kNan;
  if (q < -1e5) return kNan;  // too many terms
  double sum = 0;
  double at = q;
  for (; at <= 10 + s; at += 1) {
    const double term = scalar::pow(at, -s);
    sum += term;
    // Also of zeros: a large s makes all terms too small, and there are more than anyone waits for.
    if (at > 1 && !(term > kEpsilon * kEpsilon * std::abs(sum))) return sum;
  }
  const double power = scalar::pow(at, -s);
  sum += power * at / (s - 1) + 0.5 * power;
  // Bernoulli's numbers by factorials: B₂ₖ / (2k)!.
  constexpr double kTerms[] = {1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000,
                               1.0 / 74724249600,
                               -3617.0 / 10670622842880000.0,
                               43867.0 / 5109094217170944000.0};
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
  const double size = scalar::exp(log_gamma(n + 1)) * zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -size : size;
}

double erfinv(double x) {
  const double size = std::abs(x);
  if (!(size <= 1)) return kNan;
  if (size == 1) return std::copysign(kInfinity, x);
  if (size > 0.5) return std::copysign(erfc_inverse_of_tail(1 - size), x);
  // A first guess (Winitzki, 2008), which Halley's steps make exact.
  const double logarithm = scalar::log1p(-x * x), half = 2 / (kPi * 0.147) + logarithm / 2;
  double y = std::sqrt(std::sqrt(half * half - logarithm / 0.147) - half);
  if (size < 1e-8) return x * (kRootOfPi / 2);
  for (int i = 0; i < 3; ++i) {
    const double step = (scalar::erf(y) - size) * scalar::exp(y * y) * kRootOfPi / 2;
    y -= step / (1 + y * step);
    if (std::abs(step) < 1e-6 * y) break;  // the next step is below the last bit
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

// exp(-x) I(x) of x >= 0, or that divided by x, from the fits near 0 and far from it.
template <int near_count, int far_count>
double scaled_bessel(const double (&near)[near_count], const double (&far)[far_count], double x) {
  if (x <= 8) return polynomial(near, x / 4 - 1);
  return polynomial(far, 16 / x - 1) / std::sqrt(x);
}

}  // namespace

double bessel_i0e(double x) {
  if (std::isinf(x)) return 0;
  return scaled_bessel(kBessel0Near, kBessel0Far, std::abs(x));
}

double bessel_i1e(double x) {
  if (std::isinf(x)) return std::copysign(0.0, x);
  const double size = std::abs(x), y = scaled_bessel(kBessel1Near, kBessel1Far, size);
  return std::copysign(size <= 8 ? size * y : y, x);
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
  for (int m = 1; m < kMaxTerms; ++m) {
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

// x^a (1 - x)^b / B(a, b). What rounding takes from a + b and 1 - x counts as well.
double beta_factor(double a, double b, double x) {
  const scalar::Pair sum = sum_of(scalar::Pair{a, 0}, b), rest = sum_of(scalar::Pair{1, 0}, -x);
  scalar::Pair power = sum_of(times_log(a, x), times_log(b, rest.high));
  power.low += b * (rest.low / rest.high) + digamma(sum.high) * sum.low;
  power = sum_of(power, log_gamma_in_two(sum.high));
  const scalar::Pair gammas = sum_of(log_gamma_in_two(a), log_gamma_in_two(b));
  return scalar::exp_of_two(sum_of(power, {-gammas.high, -gammas.low}));
}

}  // namespace

double betainc(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1)) return kNan;
  if (x == 0 || x == 1) return x;
  const double factor = beta_factor(a, b, x);
  if (x < (a + 1) / (a + b + 2)) return factor * beta_fraction(a, b, x) / a;
  return 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace samegrad::special
