// The elements in another order: transpose, reverse.
#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/reduce_kernel.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

Inferred transpose_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  const Ints& perm = args.attrs.as<TransposeAttrs>().perm;
  const int rank = x.shape.rank();
  std::uint32_t seen = 0;
  for (std::int64_t axis : perm) {
    if (axis >= 0 && axis < rank) seen |= 1u << axis;
  }
  SG_CHECK_VALUE(int(perm.size()) == rank && seen == (1u << rank) - 1, args.op.name,
                 "perm must name each of the ", rank, " axes of shape ", args.shape_of(0),
                 " once: got ", to_string(perm), ".");
  ValueType y{x.dtype, {}, x.batch};
  for (int axis = 0; axis < rank; ++axis) {
    const int from = int(perm[std::size_t(axis)]);
    if (x.batch.axis == from) y.batch.axis = axis;
    y.shape.push_back(x.shape[from]);
  }
  return one_result(args, y);
}

Move transposition(const CostArgs& args) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  const Ints& perm = args.attrs.as<TransposeAttrs>().perm;
  const auto from = contiguous_steps(x.shape);
  const auto to = contiguous_steps(y.shape);
  Move move;
  for (int axis = 0; axis < y.shape.rank(); ++axis) {
    const auto a = std::size_t(axis);
    move.copy.add_axis(y.shape[axis], to[a], from[std::size_t(perm[a])]);
  }
  return move;
}

Values transpose_vjp(const VjpArgs& v) {
  const Ints& perm = v.attrs.as<TransposeAttrs>().perm;
  Ints inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) inverse[std::size_t(perm[i])] = std::int64_t(i);
  return cotangents(
      call("transpose", Expr(v.b, v.ct[0]), TransposeAttrs{.perm = std::move(inverse)}));
}

OpDef transpose_op() {
  OpDef op;
  op.name = "transpose";
  op.doc = "The axes in another order.";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<TransposeAttrs>();
  op.traits = kAnyType;
  op.infer = transpose_rule;
  set_move<transposition>(op);
  op.vjp = transpose_vjp;
  const auto perm = [](Ints axes) { return TransposeAttrs{.perm = std::move(axes)}; };
  op.samples = {{.shapes = {{3, 5}}, .attrs = perm({1, 0})},
                {.shapes = {{2, 3, 4}}, .attrs = perm({2, 0, 1})},
                {.shapes = {{5, 2, 3}}, .attrs = perm({0, 2, 1}), .batched = {1}},
                {.shapes = {{5, 2, 3, 2}}, .attrs = perm({0, 2, 1, 3}), .batched = {1}},
                {.shapes = {{5, 3}}, .attrs = perm({1, 0}), .batched = {1}}};
  return op;
}

std::uint32_t reversed_axes(std::string_view op_name, const Attrs& attrs, int rank) {
  return axes_mask(op_name, attrs.as<ReverseAttrs>().axes, rank);
}

Inferred reverse_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  const std::uint32_t mask = reversed_axes(args.op.name, args.attrs, x.shape.rank());
  const bool examples = x.batched() && (mask >> x.batch.axis & 1u);
  return examples ? Inferred{{x}, Locality::kFullBatch} : one_result(args, x);
}

Move reversal(const CostArgs& args) {
  const View& x = args.in[0];
  const std::uint32_t mask = reversed_axes("reverse", args.attrs, x.shape.rank());
  const auto steps = contiguous_steps(x.shape);
  Move move;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const std::int64_t step = steps[std::size_t(axis)];
    const bool turned = mask >> axis & 1u;
    if (turned) move.from += (x.shape[axis] - 1) * step;
    move.copy.add_axis(x.shape[axis], step, turned ? -step : step);
  }
  return move;
}

OpDef reverse_op() {
  OpDef op;
  op.name = "reverse";
  op.doc = "The elements in reverse order along axes.";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<ReverseAttrs>();
  op.traits = kAnyType;
  op.infer = reverse_rule;
  set_move<reversal>(op);
  op.vjp = [](const VjpArgs& v) {
    return cotangents(call("reverse", Expr(v.b, v.ct[0]), v.attrs));
  };
  op.samples = {{.shapes = {{2, 3}}, .attrs = ReverseAttrs{.axes = {0, -1}}},
                {.shapes = {{5, 3, 2}}, .attrs = ReverseAttrs{.axes = {1}}, .batched = {1}},
                {.shapes = {{5, 3}}, .attrs = ReverseAttrs{.axes = {0}}, .batched = {1}}};
  return op;
}

}  // namespace

std::vector<OpDef> permute_ops() {
  return {transpose_op(), reverse_op()};
}

}  // namespace samegrad
