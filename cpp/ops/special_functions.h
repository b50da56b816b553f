// Special functions of one point, in float64: float32 is computed in it and rounded once. Errors
// are a few units of the last place unless a comment says otherwise.
#pragma once

namespace samegrad::special {

double log_gamma(double x);            // log |Γ(x)|
double digamma(double x);              // its derivative; NaN at 0 and negative integers
double zeta(double s, double q);       // Σ 1 / (q + k)^s, of Hurwitz
double polygamma(double n, double x);  // the n-th derivative of digamma
double erfc(double x);                 // 1 - erf(x)
double erfinv(double x);               // the number whose erf is x
double ndtri(double p);                // where the normal distribution function is p
double bessel_i0e(double x);           // exp(-|x|) I₀(x)
double bessel_i1e(double x);           // exp(-|x|) I₁(x)
// Regularized incomplete functions. Relative errors grow with log Γ of the arguments.
double igamma(double a, double x);   // the lower one
double igammac(double a, double x);  // the upper one
double igamma_grad_a(double a, double x);
double betainc(double a, double b, double x);

}  // namespace samegrad::special
