// Elementwise functions of two arguments: the rows of kernels/binary.def.
#include <type_traits>

#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/function_flops.h"

namespace samegrad {
namespace {

// Integers that a row rejects as the second operand: they have no result.
enum class Rejected { kNothing, kZero, kNegative };

constexpr Rejected kRejected[] = {
#define SAMEGRAD_BINARY(name, doc, dtypes, result, forward, gradient_a, gradient_b, low, high, \
                        flops, linearity, rejected)                                            \
  Rejected::rejected,
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
};

template <Rejected kWhat, class T>
void check_operand(const KernelArgs& args, const char* op_name) {
  const View& b = args.in[1];
  const T* numbers = b.as<const T>();
  for (std::int64_t i = 0; i < b.size(); ++i) {
    if (kWhat == Rejected::kZero ? numbers[i] != 0 : numbers[i] >= 0) continue;
    fail(ErrorKind::kInvalidArgument, op_name,
         kWhat == Rejected::kZero ? "integers cannot be divided by 0: got 0 at "
                                  : "integers have no negative powers: got a power below 0 at ",
         place_of(args, b, i), "; divide floats, or replace these numbers first.");
  }
}

// Nothing is divided where the other operand is empty.
template <Rejected kWhat>
void check_operand(const KernelArgs& args, const char* op_name) {
  if (args.out[0].size() == 0) return;
  visit(args.in[1].dtype, [&]<class T>() {
    if constexpr (kIsOneOf<T, kIntegers>) check_operand<kWhat, T>(args, op_name);
  });
}

constexpr const char* kNames[] = {
#define SAMEGRAD_BINARY(name, ...) #name,
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
};

template <BinaryFn kFn>
void binary_kernel(const KernelArgs& args) {
  const View& a = args.in[0];
  const View& b = args.in[1];
  const View& y = args.out[0];
  if constexpr (constexpr Rejected kWhat = kRejected[int(kFn)]; kWhat != Rejected::kNothing) {
    check_operand<kWhat>(args, kNames[int(kFn)]);
  }
  const BinaryKernel f = kernels().binary(kFn, a.dtype);
  if (a.shape == b.shape) {
    f(a.data, b.data, y.data, y.size(), 1, 1);
    return;
  }
  BroadcastLoop<2>(args.in, y.shape)
      .run(args.in, y, [f](const auto& x, char* out, std::int64_t n, const auto& steps) {
        f(x[0], x[1], out, n, steps[0], steps[1]);
      });
}

template <DTypes kAllowed, ResultKind kResult>
Inferred binary_rule(const InferArgs& args) {
  check_same_dtype(args, 0, 2);
  check_dtype(args, 0, kAllowed);
  return broadcast_rule(args, kResult == kBoolResult ? DType::kBool : args.in[0].dtype);
}

template <class Gradient>
Values binary_vjp(const VjpArgs& args) {
  const Expr ct(args.b, args.ct[0]), a(args.b, args.in[0]), b(args.b, args.in[1]);
  const Expr y(args.b, args.out[0]);
  return cotangents(Gradient::of_a(ct, a, b, y), Gradient::of_b(ct, a, b, y));
}

std::vector<Sample> binary_samples(DTypes dtypes, double low, double high) {
  const auto sample = [&](std::vector<std::vector<std::int64_t>> shapes,
                          std::vector<std::uint8_t> batched) {
    return elementwise_sample(std::move(shapes), dtypes, low, high, std::move(batched));
  };
  return {sample({{2, 3}, {2, 3}}, {}),          sample({{2, 3}, {}}, {}),
          sample({{3, 1}, {2, 1, 4}}, {}),       sample({{5, 7}, {5, 7}}, {1, 1}),
          sample({{7}, {5, 7}}, {0, 1}),         sample({{5, 2, 3}, {5, 1, 3}}, {1, 1}),
          sample({{5, 2, 3}, {1, 2, 1}}, {1, 0})};
}

template <BinaryFn kFn, DTypes kAllowed, ResultKind kResult, class Gradient>
OpDef binary_op(const char* name, const char* doc, double low, double high, Linearity linearity) {
  constexpr bool kRejects = kRejected[int(kFn)] != Rejected::kNothing;
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.min_arity = op.max_arity = 2;
  op.operands = {"a", "b"};
  op.linearity = linearity;
  op.traits = kElementwise | (kRejects ? std::uint32_t(kMayRaise) : 0u);
  op.infer = binary_rule<kAllowed, kResult>;
  op.kernel = binary_kernel<kFn>;
  // One that raises says where among all.
  if (!kRejects) set_view_parts<binary_kernel<kFn>, count_of_elementwise>(op);
  op.block = {BlockFn::kBinary, int(kFn)};
  op.flops = element_flops<kFn>();
  using A = decltype(Gradient::of_a(std::declval<Expr>(), std::declval<Expr>(),
                                    std::declval<Expr>(), std::declval<Expr>()));
  using B = decltype(Gradient::of_b(std::declval<Expr>(), std::declval<Expr>(),
                                    std::declval<Expr>(), std::declval<Expr>()));
  if constexpr (std::is_same_v<A, None> && std::is_same_v<B, None>) {
    op.traits |= kNoGradient;
  } else {
    op.vjp = binary_vjp<Gradient>;
  }
  op.samples = binary_samples(kAllowed, low, high);
  return op;
}

#define SAMEGRAD_OPERANDS                                                     \
  [[maybe_unused]] Expr ct, [[maybe_unused]] Expr a, [[maybe_unused]] Expr b, \
      [[maybe_unused]] Expr y
#define SAMEGRAD_BINARY(name, doc, dtypes, result, forward, gradient_a, gradient_b, ...) \
  struct name##_gradient {                                                               \
    static auto of_a(SAMEGRAD_OPERANDS) { return gradient_a; }                           \
    static auto of_b(SAMEGRAD_OPERANDS) { return gradient_b; }                           \
  };
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
#undef SAMEGRAD_OPERANDS

}  // namespace

std::vector<OpDef> binary_ops() {
  std::vector<OpDef> ops;
#define SAMEGRAD_BINARY(name, doc, dtypes, result, forward, gradient_a, gradient_b, low, high, \
                        flops, linearity, rejected)                                            \
  ops.push_back(binary_op<BinaryFn::k_##name, dtypes, result, name##_gradient>(                \
      #name, doc, low, high, Linearity::linearity));
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
  return ops;
}

}  // namespace samegrad
