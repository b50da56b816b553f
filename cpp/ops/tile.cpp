// Repetition of whole axes and of single elements.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

// The cotangent with one axis split into two and one of them summed.
Expr sum_split_axis(Expr ct, int axis, std::int64_t outer, std::int64_t inner, bool sum_outer) {
  Ints shape;
  for (int i = 0; i < ct.type().shape.rank(); ++i) {
    if (i == axis) {
      shape.push_back(outer);
      shape.push_back(inner);
    } else {
      shape.push_back(dim(ct, i));
    }
  }
  return reduce_sum(call("reshape", ct, ReshapeAttrs{.shape = std::move(shape)}),
                    {sum_outer ? axis : axis + 1});
}

Expr like_operand(const VjpArgs& v, Expr gradient) {
  const Expr x(v.b, v.in[0]);
  return gradient.type() == x.type() ? gradient : call("reshape_like", gradient, x);
}

// ---- tile ----

Inferred tile_rule(const InferArgs& args) {
  ValueType x = args.in[0];
  const Ints& multiples = args.attrs.as<TileAttrs>().multiples;
  const bool ok = int(multiples.size()) == x.shape.rank() &&
                  std::ranges::all_of(multiples, [](std::int64_t m) { return m >= 0; });
  SG_CHECK_VALUE(ok, args.op.name, "multiples must be one number of 0 or more per axis of ",
                 args.shape_of(0), ": got ", to_string(multiples), ".");
  const bool examples = x.batched() && multiples[std::size_t(x.batch.axis)] != 1;
  if (examples) x = ordinary_type(args, x);
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (axis == x.batch.axis) continue;
    x.shape[axis] = dim_of(args.symbols, size_along(args, x, axis) * multiples[std::size_t(axis)]);
  }
  return examples ? Inferred{{x}, Locality::kFullBatch} : one_result(args, x);
}

Move tiling(const CostArgs& args) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  const Ints& multiples = args.attrs.as<TileAttrs>().multiples;
  const auto from = contiguous_steps(x.shape);
  const auto to = contiguous_steps(y.shape);
  Move move;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const auto a = std::size_t(axis);
    move.copy.add_axis(multiples[a], to[a] * x.shape[axis], 0);
    move.copy.add_axis(x.shape[axis], to[a], from[a]);
  }
  return move;
}

Values tile_vjp(const VjpArgs& v) {
  const Ints& multiples = v.attrs.as<TileAttrs>().multiples;
  Expr gradient(v.b, v.ct[0]);
  for (std::size_t axis = 0; axis < multiples.size(); ++axis) {
    if (multiples[axis] == 1) continue;
    const std::int64_t inner = dim(Expr(v.b, v.in[0]), int(axis));
    gradient = sum_split_axis(gradient, int(axis), multiples[axis], inner, true);
  }
  return cotangents(like_operand(v, gradient));
}

OpDef tile_op() {
  OpDef op;
  op.name = "tile";
  op.doc = "The whole value several times along each axis.";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<TileAttrs>();
  op.traits = kAnyType;
  op.infer = tile_rule;
  set_move<tiling>(op);
  op.vjp = tile_vjp;
  op.samples = {{.shapes = {{2, 3}}, .attrs = TileAttrs{.multiples = {2, 3}}},
                {.shapes = {{5, 2, 3}}, .attrs = TileAttrs{.multiples = {1, 2, 1}}, .batched = {1}},
                {.shapes = {{5, 3}}, .attrs = TileAttrs{.multiples = {3, 2}}, .batched = {1}}};
  return op;
}

// ---- repeat ----

int axis_repeated(const Attrs& attrs, const Shape& shape) {
  return normalize_axis(attrs.as<RepeatAttrs>().axis, shape.rank(), "repeat");
}

Inferred repeat_rule(const InferArgs& args) {
  ValueType x = args.in[0];
  const std::int64_t repeats = args.attrs.as<RepeatAttrs>().repeats;
  SG_CHECK_VALUE(repeats >= 1, args.op.name, "repeats must be 1 or more: got ", repeats, ".");
  const int axis = axis_repeated(args.attrs, x.shape);
  if (x.batch.axis == axis) {
    x.batch.rows_per_example =
        dim_of(args.symbols, size_of(args.symbols, x.batch.rows_per_example) * repeats);
  } else {
    x.shape[axis] = dim_of(args.symbols, size_along(args, x, axis) * repeats);
  }
  return one_result(args, x);
}

Move repetition(const CostArgs& args) {
  const View& x = args.in[0];
  const int axis = axis_repeated(args.attrs, x.shape);
  const std::int64_t repeats = args.attrs.as<RepeatAttrs>().repeats;
  const std::int64_t inner = x.shape.size(axis + 1, x.shape.rank());
  Move move;
  move.copy.add_axis(x.shape.size(0, axis + 1), repeats * inner, inner);
  move.copy.add_axis(repeats, inner, 0);
  move.copy.add_axis(inner, 1, 1);
  return move;
}

Values repeat_vjp(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]);
  const int axis = axis_repeated(v.attrs, x.type().shape);
  const Expr sum = sum_split_axis(Expr(v.b, v.ct[0]), axis, dim(x, axis),
                                  v.attrs.as<RepeatAttrs>().repeats, false);
  return cotangents(like_operand(v, sum));
}

OpDef repeat_op() {
  OpDef op;
  op.name = "repeat";
  op.doc = "Each element along an axis several times in a row (of examples: more rows for each).";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<RepeatAttrs>();
  op.traits = kAnyType;
  op.infer = repeat_rule;
  set_move<repetition>(op);
  op.vjp = repeat_vjp;
  const auto attrs = [](std::int64_t repeats, std::int64_t axis) {
    return RepeatAttrs{.repeats = repeats, .axis = axis};
  };
  op.samples = {{.shapes = {{2, 3}}, .attrs = attrs(2, 1)},
                {.shapes = {{5, 2, 3}}, .attrs = attrs(3, 1), .batched = {1}},
                {.shapes = {{5, 3}}, .attrs = attrs(2, 0), .batched = {1}}};
  return op;
}

}  // namespace

std::vector<OpDef> tile_ops() {
  return {tile_op(), repeat_op()};
}

}  // namespace samegrad
