// Reductions over axes: sum, prod, max, min, any, all.
#include "kernels/elementwise_fn.h"
#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/reduce_kernel.h"
#include "ops/rules.h"
#include "ops/scan.h"
#include "ops/transpose.h"

namespace samegrad {
namespace {

std::uint32_t mask_of(std::string_view op_name, const Attrs& attrs, int rank) {
  return axes_mask(op_name, attrs.as<ReduceAttrs>().axes, rank);
}

template <DTypes kAllowed>
Inferred reduce_rule(const InferArgs& args) {
  check_dtype(args, 0, kAllowed);
  const ValueType& x = args.in[0];
  const std::uint32_t mask = mask_of(args.op.name, args.attrs, x.shape.rank());
  const bool keepdims = args.attrs.as<ReduceAttrs>().keepdims;
  ValueType y{x.dtype, {}, {}};
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (mask >> axis & 1u) {
      if (keepdims) y.shape.push_back(1);
      continue;
    }
    if (x.batch.axis == axis) {
      y.batch = x.batch;
      y.batch.axis = y.shape.rank();
    }
    y.shape.push_back(x.shape[axis]);
  }
  if (x.batched() && (mask >> x.batch.axis & 1u)) return {{y}, Locality::kBatchReduction};
  return one_result(args, y);
}

template <ReduceFn kFn>
void reduce_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const std::uint32_t mask = mask_of("reduce", args.attrs, x.shape.rank());
  reduce_groups(kFn, x.dtype, AxisGroups(x.shape, mask), x.data, args.out[0].data, args.scratch);
}

template <ReduceFn kFn>
ParallelPartition reduce_parts() {
  return {.count = parts_of_reduction,
          .run = [](const KernelArgs& args, std::int64_t begin,
                    std::int64_t end) { run_reduction_parts(kFn, args, begin, end); },
          .state_bytes = state_of_reduction,
          .finish = [](const KernelArgs& args) { finish_reduction(kFn, args); }};
}

// A value of the result's shape with the reduced axes put back as 1.
Expr with_axes(const VjpArgs& args, Value value) {
  const Expr reduced(args.b, value);
  if (args.attrs.as<ReduceAttrs>().keepdims) return reduced;
  return call("expand_dims", reduced, ExpandDimsAttrs{.axes = args.attrs.as<ReduceAttrs>().axes});
}

Values sum_vjp(const VjpArgs& args) {
  return cotangents(broadcast_like(with_axes(args, args.ct[0]), Expr(args.b, args.in[0])));
}

// Ties share the cotangent equally, as in TensorFlow.
Values extreme_vjp(const VjpArgs& args) {
  const Expr x(args.b, args.in[0]);
  const Expr ct = with_axes(args, args.ct[0]);
  const Expr chosen = x == with_axes(args, args.out[0]);
  const Expr count = reduce_sum(cast(chosen, x.dtype()), args.attrs.as<ReduceAttrs>().axes, true);
  return cotangents(select(chosen, ct / count, 0.0));
}

// The product of the other elements, those before it and those behind it, axis by axis: right for
// any number of zeros, to any order.
Values prod_vjp(const VjpArgs& args) {
  const auto products = [](Expr x, std::int64_t axis, bool reverse) {
    return call("cumprod", x, ScanAttrs{.axis = axis, .exclusive = true, .reverse = reverse});
  };
  Expr x(args.b, args.in[0]);
  Expr gradient = broadcast_like(with_axes(args, args.ct[0]), x);
  for (std::int64_t axis : args.attrs.as<ReduceAttrs>().axes) {
    gradient = gradient * (products(x, axis, false) * products(x, axis, true));
    x = reduce("reduce_prod", x, {axis}, true);
  }
  return cotangents(gradient);
}

std::vector<Sample> reduce_samples(DTypes dtypes) {
  using Axes = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  const auto add = [&](std::vector<std::int64_t> shape, Axes axes, bool keepdims,
                       std::vector<std::uint8_t> batched) {
    Sample sample;
    sample.shapes = {std::move(shape)};
    sample.attrs = ReduceAttrs{.axes = std::move(axes), .keepdims = keepdims};
    sample.batched = std::move(batched);
    if (dtypes == kBools) sample.dtypes = {DType::kBool};
    sample.integer_high = 2;
    samples.push_back(std::move(sample));
  };
  add({2, 3}, {0, 1}, false, {});
  add({2, 3, 4}, {1}, false, {});
  add({2, 3, 4}, {0, 2}, true, {});
  add({7, 3}, {0}, false, {1});
  add({7, 3}, {1}, false, {1});
  add({7, 2, 3}, {0, 1, 2}, false, {1});
  add({7, 2, 3}, {0, 2}, true, {1});
  add({9, 2, 3}, {0, 1}, false, {1});
  add({9, 2, 3}, {2}, true, {1});
  return samples;
}

template <ReduceFn kFn, BinaryFn kJoin, DTypes kAllowed>
OpDef reduce_op(const char* name, const char* doc, Values (*vjp)(const VjpArgs&)) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.attrs = schema_of<ReduceAttrs>();
  op.infer = reduce_rule<kAllowed>;
  op.kernel = reduce_kernel<kFn>;
  op.parts = reduce_parts<kFn>();
  op.scratch_bytes = scratch_of_reduction;
  op.block = {BlockFn::kReduce, int(kFn)};
  op.tree = reduction_tree<kFn, kJoin>();
  if (kFn == ReduceFn::kSum) op.linearity = Linearity::kSum;
  op.vjp = vjp;
  if (!vjp) op.traits = kNoGradient;
  op.samples = reduce_samples(kAllowed);
  return op;
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  return {
      reduce_op<ReduceFn::kSum, BinaryFn::k_add, kNumbers>(
          "reduce_sum", "Sum of the elements along axes, in the operand's dtype.", sum_vjp),
      reduce_op<ReduceFn::kProd, BinaryFn::k_mul, kNumbers>(
          "reduce_prod", "Product of the elements along axes, in the operand's dtype.", prod_vjp),
      reduce_op<ReduceFn::kMax, BinaryFn::k_maximum, kNumbers>(
          "reduce_max", "Largest element along axes; ties share the gradient.", extreme_vjp),
      reduce_op<ReduceFn::kMin, BinaryFn::k_minimum, kNumbers>(
          "reduce_min", "Smallest element along axes; ties share the gradient.", extreme_vjp),
      reduce_op<ReduceFn::kAny, BinaryFn::k_logical_or, kBools>(
          "reduce_any", "True where any element along axes is.", nullptr),
      reduce_op<ReduceFn::kAll, BinaryFn::k_logical_and, kBools>(
          "reduce_all", "True where all elements along axes are.", nullptr),
  };
}

}  // namespace samegrad
