#include "kernels/scalar_functions.h"

#define SAMEGRAD_ISA_NAMESPACE scalar_variant
#include "kernels/power.h"

namespace samegrad::scalar {
namespace {

using Lanes = scalar_variant::Vec<double>;

Pair first_of(const scalar_variant::VecPair& x) {
  return {x.high.raw[0], x.low.raw[0]};
}

}  // namespace

double exp(double x) {
  return scalar_variant::exp(Lanes(x)).raw[0];
}
double log(double x) {
  return scalar_variant::log(Lanes(x)).raw[0];
}
double log1p(double x) {
  return scalar_variant::log1p(Lanes(x)).raw[0];
}
double pow(double x, double y) {
  return scalar_variant::power(Lanes(x), Lanes(y)).raw[0];
}
double sin(double x) {
  return scalar_variant::sin(Lanes(x)).raw[0];
}
double tan(double x) {
  return scalar_variant::tan(Lanes(x)).raw[0];
}
double erf(double x) {
  return scalar_variant::erf(Lanes(x)).raw[0];
}

Pair product_of(double a, double b) {
  return first_of(scalar_variant::product_of(Lanes(a), Lanes(b)));
}
Pair log_in_two(double x) {
  return first_of(scalar_variant::log_in_two(Lanes(x)));
}
double exp_of_two(Pair x) {
  return scalar_variant::exp_of_two({Lanes(x.high), Lanes(x.low)}).raw[0];
}

}  // namespace samegrad::scalar
