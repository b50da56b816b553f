// Elementwise functions of one argument: the rows of kernels/unary.def.
#include <type_traits>

#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/elementwise.h"
#include "ops/function_flops.h"

namespace samegrad {
namespace {

template <UnaryFn kFn>
void unary_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  kernels().unary(kFn, x.dtype)(x.data, args.out[0].data, x.size());
}

template <DTypes kAllowed, ResultKind kResult>
Inferred unary_rule(const InferArgs& args) {
  check_dtype(args, 0, kAllowed);
  ValueType type = args.in[0];
  if (kResult == kBoolResult) type.dtype = DType::kBool;
  return one_result(args, type);
}

template <class Gradient>
Values unary_vjp(const VjpArgs& args) {
  const auto expr = [&](Value value) { return Expr(args.b, value); };
  return cotangents(Gradient::of(expr(args.ct[0]), expr(args.in[0]), expr(args.out[0])));
}

template <UnaryFn kFn, DTypes kAllowed, ResultKind kResult, class Gradient>
OpDef unary_op(const char* name, const char* doc, double low, double high, Linearity linearity) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.linearity = linearity;
  op.traits = kElementwise;
  op.infer = unary_rule<kAllowed, kResult>;
  set_view_parts<unary_kernel<kFn>, count_of_elementwise>(op);
  op.block = {BlockFn::kUnary, int(kFn)};
  op.flops = element_flops<kFn>();
  using Result =
      decltype(Gradient::of(std::declval<Expr>(), std::declval<Expr>(), std::declval<Expr>()));
  if constexpr (std::is_same_v<Result, None>) {
    op.traits |= kNoGradient;
  } else {
    op.vjp = unary_vjp<Gradient>;
  }
  op.samples = {elementwise_sample({{2, 3}}, kAllowed, low, high, {}),
                elementwise_sample({{5, 7}}, kAllowed, low, high, {1})};
  return op;
}

#define SAMEGRAD_UNARY(name, doc, dtypes, result, forward, gradient, ...)                        \
  struct name##_gradient {                                                                       \
    static auto of([[maybe_unused]] Expr ct, [[maybe_unused]] Expr x, [[maybe_unused]] Expr y) { \
      return gradient;                                                                           \
    }                                                                                            \
  };
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY

}  // namespace

std::vector<OpDef> unary_ops() {
  std::vector<OpDef> ops;
#define SAMEGRAD_UNARY(name, doc, dtypes, result, forward, gradient, low, high, flops, linearity) \
  ops.push_back(unary_op<UnaryFn::k_##name, dtypes, result, name##_gradient>(                     \
      #name, doc, low, high, Linearity::linearity));
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY
  return ops;
}

}  // namespace samegrad
