// Functions of one double, which ask neither the C library nor the processor: those of
// kernels/maths.h for any processor, without fused multiply-add. What std::sqrt, floor, fmod and
// ldexp return is exact, or rounded as IEEE 754 says: these are used as they are.
#pragma once

namespace samegrad::scalar {

double exp(double x);
double log(double x);
double log1p(double x);
double pow(double x, double y);
double sin(double x);
double tan(double x);
double erf(double x);

// high + low, which have more bits than one number.
struct Pair {
  double high = 0, low = 0;
};
Pair product_of(double a, double b);
// The logarithm of a positive, finite x, and exp(x.high + x.low).
Pair log_in_two(double x);
double exp_of_two(Pair x);

}  // namespace samegrad::scalar
