// Accuracy and special values of the elementwise functions, against the library in long double.
#include <cmath>

#include "kernels/variants.h"

namespace samegrad {
namespace {

using Exact = long double (*)(long double);

struct Function {
  UnaryFn fn;
  Exact exact;
  double low, high;
  double most_units;  // in the last place
};

const Function kFunctions[] = {
    {UnaryFn::k_exp, std::exp, -87, 88, 1.5},
    {UnaryFn::k_expm1, std::expm1, -20, 88, 2.5},
    {UnaryFn::k_log, std::log, 1e-30, 50, 1.5},
    {UnaryFn::k_log1p, std::log1p, -0.999, 50, 2.5},
    {UnaryFn::k_sin, std::sin, -3000, 3000, 2.5},
    {UnaryFn::k_cos, std::cos, -3000, 3000, 2.5},
    {UnaryFn::k_tan, std::tan, -300, 300, 4},
    {UnaryFn::k_asin, std::asin, -1, 1, 4},
    {UnaryFn::k_acos, std::acos, -1, 1, 4},
    {UnaryFn::k_atan, std::atan, -30, 30, 3},
    {UnaryFn::k_sinh, std::sinh, -85, 85, 4},
    {UnaryFn::k_cosh, std::cosh, -85, 85, 3},
    {UnaryFn::k_tanh, std::tanh, -9, 9, 4},
    {UnaryFn::k_asinh, std::asinh, -50, 50, 4},
    {UnaryFn::k_acosh, std::acosh, 1, 50, 4},
    {UnaryFn::k_atanh, std::atanh, -0.9999, 0.9999, 4},
    {UnaryFn::k_erf, std::erf, -5, 5, 4},
    {UnaryFn::k_sqrt, std::sqrt, 0, 100, 0.51},
    {UnaryFn::k_rsqrt, [](long double x) { return 1 / std::sqrt(x); }, 1e-3, 100, 1.6},
    {UnaryFn::k_sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, 4},
    {UnaryFn::k_softplus, [](long double x) { return std::log1p(std::exp(x)); }, -80, 80, 4},
};

// |y - exact| in units of the last place of the exact value.
template <class T>
double error_units(T y, long double exact) {
  const T nearest = static_cast<T>(std::fabs(exact));
  const T next = std::nextafter(nearest, std::numeric_limits<T>::infinity());
  return static_cast<double>(std::fabs(static_cast<long double>(y) - exact) /
                             (static_cast<long double>(next) - nearest));
}

template <class T>
double worst_error(const KernelTable& table, const Function& f, T* where) {
  constexpr std::int64_t kCount = 40000;
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> spread(f.low, f.high), exponent(-20, 0);
  std::vector<T> x, y(kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const double scaled = spread(generator) * std::exp2(exponent(generator));
    const double value = i % 2 == 0 ? spread(generator) : scaled;
    x.push_back(static_cast<T>(value < f.low ? f.low : value));
  }
  table.unary(f.fn, kDTypeOf<T>)(x.data(), y.data(), kCount);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = error_units(y[i], f.exact(x[i]));
    if (!(error <= worst)) worst = error, *where = x[i];
  }
  return worst;
}

template <class T>
void check_accuracy(const KernelTable& table) {
  for (const Function& f : kFunctions) {
    T where = 0;
    const double worst = worst_error<T>(table, f, &where);
    if (std::getenv("SAMEGRAD_TEST_VERBOSE") != nullptr) {
      std::printf("%s %-10s %s %.2f units at %.17g\n", table.isa, name_of(f.fn),
                  name_of(kDTypeOf<T>), worst, double(where));
    }
    CHECK(worst <= f.most_units, table.isa, " ", name_of(f.fn), " ", name_of(kDTypeOf<T>),
          " is off by ", worst, " units at ", where);
  }
}

TEST("functions are a few units of the last place from the exact value") {
  for_each_variant([](const KernelTable& table) {
    check_accuracy<float>(table);
    check_accuracy<double>(table);
  });
}

template <class T>
T apply(const KernelTable& table, UnaryFn fn, double x) {
  T y = static_cast<T>(x);
  table.unary(fn, kDTypeOf<T>)(&y, &y, 1);
  return y;
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// By value and sign of zero; NaN equals NaN.
void check_same(double y, double expected, const char* what, double x) {
  const bool both_nan = std::isnan(y) && std::isnan(expected);
  CHECK(both_nan || (y == expected && std::signbit(y) == std::signbit(expected)), what, "(", x,
        ") = ", y, ", not ", expected);
}

struct Special {
  UnaryFn fn;
  double x, y;
};
const Special kSpecials[] = {
    {UnaryFn::k_exp, -kInf, 0},      {UnaryFn::k_exp, kInf, kInf},
    {UnaryFn::k_exp, 0, 1},          {UnaryFn::k_exp, 1e30, kInf},
    {UnaryFn::k_exp, -1e30, 0},      {UnaryFn::k_expm1, -kInf, -1},
    {UnaryFn::k_expm1, kInf, kInf},  {UnaryFn::k_expm1, -0.0, -0.0},
    {UnaryFn::k_log, 0, -kInf},      {UnaryFn::k_log, -0.0, -kInf},
    {UnaryFn::k_log, -1, kNaN},      {UnaryFn::k_log, -kInf, kNaN},
    {UnaryFn::k_log, kInf, kInf},    {UnaryFn::k_log, 1, 0},
    {UnaryFn::k_log1p, -1, -kInf},   {UnaryFn::k_log1p, -2, kNaN},
    {UnaryFn::k_log1p, kInf, kInf},  {UnaryFn::k_log1p, -0.0, -0.0},
    {UnaryFn::k_sin, -0.0, -0.0},    {UnaryFn::k_sin, kInf, kNaN},
    {UnaryFn::k_cos, 0, 1},          {UnaryFn::k_cos, -kInf, kNaN},
    {UnaryFn::k_tan, -0.0, -0.0},    {UnaryFn::k_tan, kInf, kNaN},
    {UnaryFn::k_asin, 2, kNaN},      {UnaryFn::k_acos, -1.5, kNaN},
    {UnaryFn::k_acos, 1, 0},         {UnaryFn::k_atan, -0.0, -0.0},
    {UnaryFn::k_sinh, kInf, kInf},   {UnaryFn::k_sinh, -kInf, -kInf},
    {UnaryFn::k_cosh, -kInf, kInf},  {UnaryFn::k_cosh, 0, 1},
    {UnaryFn::k_tanh, kInf, 1},      {UnaryFn::k_tanh, -1e30, -1},
    {UnaryFn::k_tanh, -0.0, -0.0},   {UnaryFn::k_asinh, -kInf, -kInf},
    {UnaryFn::k_acosh, -1e5, kNaN},  {UnaryFn::k_acosh, -1e30, kNaN},
    {UnaryFn::k_acosh, -kInf, kNaN}, {UnaryFn::k_acosh, -1, kNaN},
    {UnaryFn::k_acosh, 0.5, kNaN},   {UnaryFn::k_acosh, 1, 0},
    {UnaryFn::k_acosh, kInf, kInf},  {UnaryFn::k_atanh, 1, kInf},
    {UnaryFn::k_atanh, -1, -kInf},   {UnaryFn::k_atanh, 1.5, kNaN},
    {UnaryFn::k_erf, kInf, 1},       {UnaryFn::k_erf, -kInf, -1},
    {UnaryFn::k_erf, -0.0, -0.0},    {UnaryFn::k_sigmoid, kInf, 1},
    {UnaryFn::k_sigmoid, -kInf, 0},  {UnaryFn::k_sigmoid, 0, 0.5},
    {UnaryFn::k_softplus, -kInf, 0}, {UnaryFn::k_softplus, kInf, kInf},
    {UnaryFn::k_sqrt, -1, kNaN},     {UnaryFn::k_sqrt, kInf, kInf},
    {UnaryFn::k_rsqrt, 0, kInf},     {UnaryFn::k_reciprocal, -0.0, -kInf},
    {UnaryFn::k_round, 0.5, 0},      {UnaryFn::k_round, 1.5, 2},
    {UnaryFn::k_round, -2.5, -2},    {UnaryFn::k_floor, -0.5, -1},
    {UnaryFn::k_ceil, 0.5, 1},       {UnaryFn::k_sign, -0.25, -1},
    {UnaryFn::k_sign, 0, 0},         {UnaryFn::k_sign, kInf, 1},
    {UnaryFn::k_abs, -kInf, kInf},   {UnaryFn::k_neg, 0, -0.0},
};

TEST("special values are those of the C standard") {
  for_each_variant([](const KernelTable& table) {
    for (const Special& s : kSpecials) {
      check_same(apply<float>(table, s.fn, s.x), s.y, name_of(s.fn), s.x);
      check_same(apply<double>(table, s.fn, s.x), s.y, name_of(s.fn), s.x);
    }
    for (int k = 0; k < static_cast<int>(UnaryFn::kCount); ++k) {
      const auto fn = static_cast<UnaryFn>(k);
      if (fn == UnaryFn::k_logical_not || std::string(name_of(fn)).starts_with("is_")) continue;
      check_same(apply<float>(table, fn, kNaN), kNaN, name_of(fn), kNaN);
      check_same(apply<double>(table, fn, kNaN), kNaN, name_of(fn), kNaN);
    }
  });
}

TEST("exp and log are right at the ends of the range, denormals included") {
  for_each_variant([](const KernelTable& table) {
    for (const double x : {-744.0, -740.5, -709.0, -103.5, -100.0, -88.0, 88.7, 709.7}) {
      const double y = apply<double>(table, UnaryFn::k_exp, x);
      CHECK(error_units(y, std::exp(static_cast<long double>(x))) <= 1.5, "exp(", x, ") = ", y);
      if (x < -104 || x > 89) continue;
      const float z = apply<float>(table, UnaryFn::k_exp, x);
      CHECK(error_units(z, std::exp(static_cast<long double>(static_cast<float>(x)))) <= 1.5,
            "exp(", x, ") = ", z);
    }
    for (const double x : {5e-324, 1e-310, 2.3e-308, 1e308}) {
      CHECK(error_units(apply<double>(table, UnaryFn::k_log, x),
                        std::log(static_cast<long double>(x))) <= 1.5,
            "log(", x, ")");
    }
    for (const float x : {1e-45f, 1e-40f, 1.2e-38f, 3e38f}) {
      CHECK(error_units(apply<float>(table, UnaryFn::k_log, x),
                        std::log(static_cast<long double>(x))) <= 1.5,
            "log(", x, ")");
    }
    CHECK(apply<float>(table, UnaryFn::k_sinh, 89.2) < std::numeric_limits<float>::infinity());
  });
}

template <class T>
void check_two(const KernelTable& table, BinaryFn fn, double a, double b, long double exact) {
  const T u = static_cast<T>(a), v = static_cast<T>(b);
  T y;
  table.binary(fn, kDTypeOf<T>)(&u, &v, &y, 1, 1, 1);
  const bool same = std::isnan(exact) ? std::isnan(y) : y == static_cast<T>(exact);
  CHECK(same || error_units(y, exact) <= 4, name_of(fn), "(", a, ", ", b, ") = ", y, ", not ",
        static_cast<double>(exact));
}

TEST("pow and atan2 agree with the library, special values included") {
  const double values[] = {0.0, -0.0, 1, -1, 0.5, -2, 3, 2.25, kInf, -kInf, kNaN, 17, -0.125};
  for_each_variant([&](const KernelTable& table) {
    for (const long double a : values) {
      for (const long double b : values) {
        const auto x = static_cast<double>(a), y = static_cast<double>(b);
        check_two<float>(table, BinaryFn::k_pow, x, y, std::pow(a, b));
        check_two<double>(table, BinaryFn::k_pow, x, y, std::pow(a, b));
        check_two<float>(table, BinaryFn::k_atan2, x, y, std::atan2(a, b));
        check_two<double>(table, BinaryFn::k_atan2, x, y, std::atan2(a, b));
      }
    }
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
