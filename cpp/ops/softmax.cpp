// Softmax and its logarithm over the last axis.
#include "kernels/table.h"
#include "ops/expr.h"
#include "ops/function_flops.h"
#include "ops/partition.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

Inferred softmax_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_min_rank(args, 0, 1);
  const ValueType& x = args.in[0];
  // Over the examples themselves: needs all of them.
  const bool whole = x.batch.axis == x.shape.rank() - 1;
  return whole ? Inferred{{x}, Locality::kFullBatch} : same_as_input(args);
}

std::int64_t lines_of_result(const CostArgs& args) {
  const Shape& shape = args.out[0].shape;
  return shape.size(0, shape.rank() - 1);
}

template <bool kLog>
void run_softmax(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& x = args.in[0];
  const std::int64_t n = x.shape[x.shape.rank() - 1];
  if (n == 0) return;
  const SoftmaxKernels& softmax = kernels().softmax(x.dtype);
  const std::int64_t first = begin * n * std::int64_t(size_of(x.dtype));
  (kLog ? softmax.log_softmax : softmax.softmax)(x.as<char>() + first,
                                                 args.out[0].as<char>() + first, end - begin, n);
}

Expr sum_last(Expr x) {
  return reduce_sum(x, {x.type().shape.rank() - 1}, true);
}

Values softmax_vjp(const VjpArgs& args) {
  const Expr ct(args.b, args.ct[0]), y(args.b, args.out[0]);
  return cotangents(y * (ct - sum_last(ct * y)));
}

Values log_softmax_vjp(const VjpArgs& args) {
  const Expr ct(args.b, args.ct[0]), y(args.b, args.out[0]);
  return cotangents(ct - exp(y) * sum_last(ct));
}

template <bool kLog>
OpDef softmax_op(const char* name, const char* doc, Values (*vjp)(const VjpArgs&)) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.infer = softmax_rule;
  set_parts<lines_of_result, run_softmax<kLog>>(op);
  op.scratch_bytes = no_scratch;
  op.block = {BlockFn::kSoftmax, kLog};
  op.flops = [](const CostArgs& args) { return kPolynomialFlops * double(args.out[0].size()); };
  op.vjp = vjp;
  op.samples = {{.shapes = {{2, 3}}, .attrs = {}},
                {.shapes = {{5, 10}}, .attrs = {}, .batched = {1}},
                {.shapes = {{5, 2, 3}}, .attrs = {}, .batched = {1}}};
  return op;
}

}  // namespace

std::vector<OpDef> softmax_ops() {
  return {
      softmax_op<false>("softmax", "exp(x) divided by its sum over the last axis.", softmax_vjp),
      softmax_op<true>("log_softmax", "Logarithm of the softmax over the last axis.",
                       log_softmax_vjp)};
}

}  // namespace samegrad
