// Choice and conversion of dtypes.
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"

namespace samegrad {
namespace {

Inferred select_rule(const InferArgs& args) {
  check_dtype(args, 0, kBools);
  check_same_dtype(args, 1, 3);
  return broadcast_rule(args, args.in[1].dtype);
}

void select_kernel(const KernelArgs& args) {
  const View& y = args.out[0];
  const SelectKernel f = kernels().select(y.dtype);
  BroadcastLoop<3>(args.in, y.shape)
      .run(args.in, y, [f](const auto& x, char* out, std::int64_t n, const auto& steps) {
        f(x[0], x[1], x[2], out, n, steps[0], steps[1], steps[2]);
      });
}

Values select_vjp(const VjpArgs& args) {
  const Expr condition(args.b, args.in[0]), ct(args.b, args.ct[0]);
  return cotangents(none(), select(condition, ct, 0.0), select(condition, 0.0, ct));
}

OpDef select_op() {
  OpDef op;
  op.name = "select";
  op.doc = "a where the condition holds, b elsewhere, broadcasting.";
  op.min_arity = op.max_arity = 3;
  op.operands = {"condition", "a", "b"};
  op.linearity = Linearity::kSum;
  op.scaled = ~1u;
  op.traits = kElementwise;
  op.infer = select_rule;
  set_view_parts<select_kernel, count_of_elementwise>(op);
  op.block = {BlockFn::kSelect};
  op.vjp = select_vjp;
  const auto sample = [](std::vector<std::vector<std::int64_t>> shapes,
                         std::vector<std::uint8_t> batched) {
    Sample s;
    s.shapes = std::move(shapes);
    s.dtypes = {DType::kBool, DType::kFloat32, DType::kFloat32};
    s.batched = std::move(batched);
    return s;
  };
  op.samples = {sample({{2, 3}, {2, 3}, {2, 3}}, {}), sample({{2, 1}, {3}, {}}, {}),
                sample({{5, 3}, {5, 3}, {}}, {1, 1, 0}), sample({{5, 1}, {3}, {5, 3}}, {1, 0, 1})};
  return op;
}

Inferred cast_rule(const InferArgs& args) {
  ValueType type = args.in[0];
  type.dtype = args.attrs.as<CastAttrs>().dtype;
  Inferred inferred = one_result(args, type);
  inferred.linear =
      is_floating(type.dtype) || (type.dtype != DType::kBool && !is_floating(args.in[0].dtype));
  return inferred;
}

void cast_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  kernels().cast(x.dtype, y.dtype)(x.data, y.data, x.size());
}

Values cast_vjp(const VjpArgs& args) {
  const DType from = args.b.type(args.in[0]).dtype;
  if (!is_floating(from) || !is_floating(args.attrs.as<CastAttrs>().dtype)) return {kNoValue};
  return cotangents(cast(Expr(args.b, args.ct[0]), from));
}

OpDef cast_op() {
  OpDef op;
  op.name = "cast";
  op.doc =
      "The elements as another dtype; floats are cut towards zero where integers are asked for.";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<CastAttrs>();
  op.traits = kElementwise;
  op.infer = cast_rule;
  set_view_parts<cast_kernel, count_of_elementwise>(op);
  op.block = {BlockFn::kCast};
  op.vjp = cast_vjp;
  op.samples = {{.shapes = {{2, 3}}, .attrs = CastAttrs{.dtype = DType::kFloat64}},
                {.shapes = {{5, 7}}, .attrs = CastAttrs{.dtype = DType::kFloat32}, .batched = {1}},
                {.shapes = {{5}}, .attrs = CastAttrs{.dtype = DType::kInt32}, .batched = {1}}};
  return op;
}

}  // namespace

std::vector<OpDef> select_ops() {
  return {select_op(), cast_op()};
}

}  // namespace samegrad
