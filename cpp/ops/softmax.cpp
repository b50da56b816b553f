// Softmax and its logarithm over the last axis.
#include "kernels/table.h"
#include "ops/expr.h"
#include "ops/families.h"
#include "ops/function_flops.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

Inferred softmax_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_min_rank(args, 0, 1);
  Inferred inferred = same_as_input(args);
  // Over the examples themselves: needs all of them.
  if (args.in[0].batch.axis == args.in[0].shape.rank() - 1) inferred.locality = Locality::kWhole;
  return inferred;
}

struct Rows {
  explicit Rows(const View& x)
      : n(x.shape[x.shape.rank() - 1]), count(x.shape.size(0, x.shape.rank() - 1)) {}
  std::int64_t n, count;
};

void softmax_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const Rows rows(x);
  if (rows.n > 0) kernels().softmax(x.dtype).softmax(x.data, args.out[0].data, rows.count, rows.n);
}

void log_softmax_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const Rows rows(x);
  if (rows.n == 0) return;
  kernels().softmax(x.dtype).log_softmax(x.data, args.out[0].data, rows.count, rows.n);
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

OpDef softmax_row(const char* name, const char* doc, Kernel kernel, Values (*vjp)(const VjpArgs&)) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.infer = softmax_rule;
  op.kernel = kernel;
  op.block = {BlockFn::kSoftmax, kernel == log_softmax_kernel};
  op.flops = [](const CostArgs& args) { return kPolynomialFlops * double(args.out[0].size()); };
  op.vjp = vjp;
  op.samples = {{.shapes = {{2, 3}}, .attrs = {}},
                {.shapes = {{5, 10}}, .attrs = {}, .batched = {1}},
                {.shapes = {{5, 2, 3}}, .attrs = {}, .batched = {1}}};
  return op;
}

}  // namespace

std::vector<OpDef> softmax_ops() {
  return {softmax_row("softmax", "exp(x) divided by its sum over the last axis.", softmax_kernel,
                      softmax_vjp),
          softmax_row("log_softmax", "Logarithm of the softmax over the last axis.",
                      log_softmax_kernel, log_softmax_vjp)};
}

}  // namespace samegrad
