// Special functions and integers by their bits: a function of the operands' elements in the
// same place. Operands have one shape; Python broadcasts them. No other loop is joined with these.
#include <cmath>

#include "base/dtype.h"
#include "ops/elementwise.h"
#include "ops/linalg.h"
#include "ops/special_functions.h"

namespace samegrad {
namespace {

constexpr double kTwoByRootOfPi = 1.1283791670955126, kRootOfTwoPi = 2.5066282746310002;

template <DTypes kAllowed>
Inferred pointwise_rule(const InferArgs& args) {
  check_dtype(args, 0, kAllowed);
  check_same_dtype(args, 0, int(args.in.size()));
  for (const ValueType& type : args.in) {
    SG_CHECK_VALUE(same_shape(args, type, args.in[0]), args.op.name,
                   "operands must have one shape: got ", shapes_of_operands(args),
                   "; broadcast them.");
  }
  return broadcast_rule(args, args.in[0].dtype);
}

// double f(double...) of the elements [begin, end).
template <auto kFunction, std::size_t... kOperands>
void run_function(const KernelArgs& args, std::int64_t begin, std::int64_t end,
                  std::index_sequence<kOperands...>) {
  visit<kFloats>("special", args.out[0].dtype, [&]<class T>() {
    T* y = args.out[0].as<T>();
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = T(kFunction(double(args.in[kOperands].as<const T>()[i])...));
    }
  });
}

template <auto kFunction, std::size_t kArity>
void run_special(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  run_function<kFunction>(args, begin, end, std::make_index_sequence<kArity>());
}

using Vjp = Values (*)(const VjpArgs&);

template <auto kFunction, std::size_t kArity>
OpDef special_op(const char* name, const char* doc, std::vector<std::string> operands, double low,
                 double high, Vjp vjp) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.min_arity = op.max_arity = int(kArity);
  op.operands = std::move(operands);
  op.infer = pointwise_rule<kFloats>;
  set_parts<elements_of_result, run_special<kFunction, kArity>>(op);
  op.scratch_bytes = no_scratch;
  op.vjp = vjp;
  op.flops = [](const CostArgs& args) { return 64.0 * double(args.out[0].size()); };
  using Shapes = std::vector<std::vector<std::int64_t>>;
  op.samples = {{.shapes = Shapes(kArity, {2, 3}), .attrs = {}, .low = low, .high = high},
                {.shapes = Shapes(kArity, {5, 7}),
                 .attrs = {},
                 .low = low,
                 .high = high,
                 .batched = std::vector<std::uint8_t>(kArity, 1)}};
  return op;
}

// Empties the samples of an op whose operand changes the result but has no derivative. Finite
// differences then have nothing to compare, and tests of tiles use other samples.
OpDef without_differences(OpDef op) {
  for (Sample& sample : op.samples) {
    for (std::vector<std::int64_t>& shape : sample.shapes) shape[0] = 0;
  }
  return op;
}

// Gives an op without a second derivative samples of a dtype that finite differences skip.
OpDef without_second(OpDef op) {
  for (Sample& sample : op.samples) sample.dtypes.assign(sample.shapes.size(), DType::kFloat16);
  return op;
}

Expr operand(const VjpArgs& v, std::size_t i) {
  return {v.b, v.in[i]};
}
Expr flowing(const VjpArgs& v) {
  return {v.b, v.ct[0]};
}
Expr result(const VjpArgs& v) {
  return {v.b, v.out[0]};
}

std::vector<OpDef> gamma_rows() {
  return {
      special_op<special::log_gamma, 1>(
          "lgamma", "log(|gamma(x)|) of each element.", {"x"}, 0.3, 4,
          [](const VjpArgs& v) { return cotangents(flowing(v) * call("digamma", operand(v, 0))); }),
      special_op<special::digamma, 1>("digamma", "The derivative of lgamma.", {"x"}, 0.4, 4,
                                      [](const VjpArgs& v) {
                                        const Expr x = operand(v, 0);
                                        return cotangents(flowing(v) *
                                                          call("polygamma", ones_like(x), x));
                                      }),
      without_differences(special_op<special::polygamma, 2>(
          "polygamma", "The n-th derivative of digamma, n being an integer.", {"n", "x"}, 1, 1,
          [](const VjpArgs& v) {
            const Expr n = operand(v, 0);
            return cotangents(none(), flowing(v) * call("polygamma", n + 1.0, operand(v, 1)));
          })),
      without_differences(special_op<special::zeta, 2>(
          "zeta", "The sum of (q + k) ** -s over k = 0, 1, …; no derivative flows to s.",
          {"s", "q"}, 2, 3, [](const VjpArgs& v) {
            const Expr s = operand(v, 0);
            return cotangents(none(), -flowing(v) * s * call("zeta", s + 1.0, operand(v, 1)));
          }))};
}

std::vector<OpDef> normal_rows() {
  return {special_op<special::erfc, 1>(
              "erfc", "1 - erf(x), exact where that is tiny.", {"x"}, -2, 2,
              [](const VjpArgs& v) {
                return cotangents(flowing(v) * -kTwoByRootOfPi * exp(-square(operand(v, 0))));
              }),
          special_op<special::erfinv, 1>(
              "erfinv", "The number whose erf is x: infinite of -1 and 1, NaN outside.", {"x"},
              -0.8, 0.8,
              [](const VjpArgs& v) {
                return cotangents(flowing(v) * (1 / kTwoByRootOfPi) * exp(square(result(v))));
              }),
          special_op<special::ndtri, 1>("ndtri", "Where the normal distribution function is p.",
                                        {"p"}, 0.1, 0.9, [](const VjpArgs& v) {
                                          return cotangents(flowing(v) * kRootOfTwoPi *
                                                            exp(square(result(v)) * 0.5));
                                        })};
}

std::vector<OpDef> bessel_rows() {
  return {
      special_op<special::bessel_i0e, 1>(
          "bessel_i0e", "exp(-|x|) I0(x), I0 being a modified Bessel function.", {"x"}, -2.7, 3.1,
          [](const VjpArgs& v) {
            const Expr x = operand(v, 0);
            return cotangents(flowing(v) * (call("bessel_i1e", x) - sign(x) * result(v)));
          }),
      special_op<special::bessel_i1e, 1>(
          "bessel_i1e", "exp(-|x|) I1(x), I1 being a modified Bessel function.", {"x"}, -2.7, 3.1,
          [](const VjpArgs& v) {
            // I1(x) / x is 1/2 at 0.
            const Expr x = operand(v, 0), y = result(v), at_zero = x == 0.0;
            const Expr ratio = select(at_zero, 0.5, y / select(at_zero, ones_like(x), x));
            const Expr slope = call("bessel_i0e", x) - y * sign(x) - ratio;
            return cotangents(flowing(v) * slope);
          })};
}

// x^(a - 1) exp(-x) / Γ(a): the slope of igamma along x.
Expr gamma_density(Expr a, Expr x) {
  return exp(xlogy(a - 1.0, x) - x - call("lgamma", a));
}

std::vector<OpDef> incomplete_rows() {
  return {
      without_second(special_op<special::igamma, 2>(
          "igamma", "The regularized lower incomplete gamma function P(a, x).", {"a", "x"}, 0.6, 4,
          [](const VjpArgs& v) {
            const Expr a = operand(v, 0), x = operand(v, 1), ct = flowing(v);
            return cotangents(ct * call("igamma_grad_a", a, x), ct * gamma_density(a, x));
          })),
      without_second(special_op<special::igammac, 2>(
          "igammac", "The regularized upper incomplete gamma function Q(a, x).", {"a", "x"}, 0.6, 4,
          [](const VjpArgs& v) {
            const Expr a = operand(v, 0), x = operand(v, 1), ct = -flowing(v);
            return cotangents(ct * call("igamma_grad_a", a, x), ct * gamma_density(a, x));
          })),
      without_differences(special_op<special::betainc, 3>(
          "betainc", "The regularized incomplete beta function; no derivative flows to a and b.",
          {"a", "b", "x"}, 0.2, 0.8, [](const VjpArgs& v) {
            const Expr a = operand(v, 0), b = operand(v, 1), x = operand(v, 2);
            const Expr whole = call("lgamma", a + b) - call("lgamma", a) - call("lgamma", b);
            const Expr slope = exp(whole + xlogy(a - 1.0, x) + xlogy(b - 1.0, 1.0 - x));
            return cotangents(none(), none(), flowing(v) * slope);
          }))};
}

OpDef igamma_grad_op() {
  OpDef op = special_op<special::igamma_grad_a, 2>(
      "igamma_grad_a", "The derivative of igamma with respect to a; it has none of its own.",
      {"a", "x"}, 0.6, 4, nullptr);
  op.traits = kBackward;
  return op;
}

// The step between neighbours counts for no derivative. Of the type itself: in a wider one the next
// number is nearer.
void run_next_after(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  visit<kFloats>("next_after", args.out[0].dtype, [&]<class T>() {
    const T *from = args.in[0].as<const T>(), *to = args.in[1].as<const T>();
    T* y = args.out[0].as<T>();
    for (std::int64_t i = begin; i < end; ++i) y[i] = std::nextafter(from[i], to[i]);
  });
}

OpDef next_after_op() {
  OpDef op = special_op<special::igamma, 2>(
      "next_after", "The number next to each element of a on the way to b.", {"a", "b"}, -2, 2,
      [](const VjpArgs& v) { return cotangents(flowing(v), zeros_like(operand(v, 1))); });
  set_parts<elements_of_result, run_next_after>(op);
  return op;
}

// ---- integers by their bits ----

template <class T>
constexpr T clamped_shift(T by) {
  constexpr T kMost = T(8 * sizeof(T) - 1);
  return by < T(0) ? T(0) : by > kMost ? kMost : by;
}

struct And {
  static auto of(auto a, auto b) { return a & b; }
};
struct Or {
  static auto of(auto a, auto b) { return a | b; }
};
struct Xor {
  static auto of(auto a, auto b) { return a ^ b; }
};
struct ShiftLeft {
  template <class T>
  static T of(T a, T b) {
    return T(std::uint64_t(a) << clamped_shift(b));
  }
};
struct ShiftRight {
  template <class T>
  static T of(T a, T b) {
    return T(a >> clamped_shift(b));
  }
};

template <class Function>
void run_bits(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  visit<kIntegers>("bitwise", args.out[0].dtype, [&]<class T>() {
    const T *a = args.in[0].as<const T>(), *b = args.in[1].as<const T>();
    T* y = args.out[0].as<T>();
    for (std::int64_t i = begin; i < end; ++i) y[i] = T(Function::of(a[i], b[i]));
  });
}

template <class Function>
OpDef bits_op(const char* name, const char* doc) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.min_arity = op.max_arity = 2;
  op.operands = {"a", "b"};
  op.traits = kNoGradient;
  op.infer = pointwise_rule<kIntegers>;
  set_parts<elements_of_result, run_bits<Function>>(op);
  op.scratch_bytes = no_scratch;
  const std::vector<DType> dtypes{DType::kInt32, DType::kInt32};
  op.samples = {{.shapes = {{2, 3}, {2, 3}}, .attrs = {}, .dtypes = dtypes, .integer_high = 9},
                {.shapes = {{5, 7}, {5, 7}},
                 .attrs = {},
                 .dtypes = dtypes,
                 .batched = {1, 1},
                 .integer_high = 9}};
  return op;
}

}  // namespace

std::vector<OpDef> pointwise_ops() {
  std::vector<OpDef> ops{
      bits_op<And>("bitwise_and", "The bits that are set in both."),
      bits_op<Or>("bitwise_or", "The bits that are set in one of them."),
      bits_op<Xor>("bitwise_xor", "The bits that are set in exactly one of them."),
      bits_op<ShiftLeft>("shift_left",
                         "a with its bits moved up by b, from 0 to the last bit of the type."),
      bits_op<ShiftRight>("shift_right", "a with its bits moved down by b, the sign filling up."),
      igamma_grad_op(),
      next_after_op()};
  for (std::vector<OpDef> (*rows)() : {gamma_rows, normal_rows, bessel_rows, incomplete_rows}) {
    for (OpDef& op : rows()) ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace samegrad
