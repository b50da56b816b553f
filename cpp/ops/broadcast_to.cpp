// Repetition along axes of size 1.
#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

// ---- shapes ----

// True if an axis of x can be broadcast to a size: it has that size, or is 1.
bool repeats_to(const InferArgs& args, const ValueType& x, int axis, const Size& size) {
  const Size own = size_along(args, x, axis);
  if (own == Size(1) || same_size(args, own, size)) return true;
  return follows_lengths(args.symbols, own) ? same_size(args, own, 1)
                                            : is_one(args.symbols, x, axis);
}

Inferred broadcast_to_rule(const InferArgs& args) {
  const Ints& wanted = args.attrs.as<BroadcastAttrs>().shape;
  const ValueType& x = args.in[0];
  const int missing = int(wanted.size()) - x.shape.rank();
  bool ok = missing >= 0;
  ValueType y{x.dtype, {}, {}};
  for (int axis = 0; ok && axis < int(wanted.size()); ++axis) {
    const std::int64_t dim = wanted[std::size_t(axis)];
    const int own = axis - missing;
    const bool kept = dim < 0 && !is_symbolic(dim);
    ok = own < 0 ? !kept : kept || repeats_to(args, x, own, size_of(args.symbols, dim));
    if (!ok) break;
    const bool examples =
        own >= 0 && x.batch.axis == own &&
        (kept || same_size(args, size_along(args, x, own), size_of(args.symbols, dim)));
    if (examples) {
      y.batch = x.batch;
      y.batch.axis = axis;
    }
    y.shape.push_back(kept || examples ? x.shape[own] : dim);
  }
  SG_CHECK_VALUE(ok, args.op.name, "shape ", args.shape_of(0), " does not broadcast to ",
                 to_string(wanted), ": sizes must be equal, 1 or kept by -1.");
  return x.batched() && !y.batched() ? Inferred{{y}, Locality::kFullBatch} : one_result(args, y);
}

Inferred broadcast_like_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  ValueType y = args.in[1];
  y.dtype = x.dtype;
  const int missing = y.shape.rank() - x.shape.rank();
  bool whole = missing < 0;
  bool ok = missing >= 0;
  for (int axis = 0; ok && axis < x.shape.rank(); ++axis) {
    ok = repeats_to(args, x, axis, size_along(args, y, axis + missing));
    const bool has = x.batch.axis == axis, like_has = y.batch.axis == axis + missing;
    // Examples are cut together, or x has one row for all of them.
    const bool same = has && like_has && x.batch.symbol == y.batch.symbol &&
                      x.batch.rows_per_example == y.batch.rows_per_example;
    whole = whole || ((has || like_has) && !same && x.shape[axis] != 1);
  }
  SG_CHECK_VALUE(ok, args.op.name, "shape ", args.shape_of(0), " does not broadcast to ",
                 args.shape_of(1), ": sizes must be equal or 1.");
  return whole ? Inferred{{y}, Locality::kFullBatch} : one_result(args, y);
}

// ---- kernels ----

Move broadcast(const CostArgs& args) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  const int missing = y.shape.rank() - x.shape.rank();
  const auto from = contiguous_steps(x.shape);
  const auto to = contiguous_steps(y.shape);
  Move move;
  for (int axis = 0; axis < y.shape.rank(); ++axis) {
    const int own = axis - missing;
    const bool repeats = own < 0 || x.shape[own] == 1;
    const std::int64_t step = repeats ? 0 : from[std::size_t(own)];
    move.copy.add_axis(y.shape[axis], to[std::size_t(axis)], step);
  }
  return move;
}

// ---- gradients ----

// Sums over the axes along which x was repeated.
Value sum_repeated(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]), ct(v.b, v.ct[0]);
  const ValueType from = ct.type(), to = x.type();
  const int missing = from.shape.rank() - to.shape.rank();
  Ints axes;
  for (int axis = 0; axis < from.shape.rank(); ++axis) {
    const auto& symbols = v.b.graph().symbols;
    const bool one = axis < missing || is_one(symbols, to, axis - missing);
    if (axis < missing || (one && !is_one(symbols, from, axis))) axes.push_back(axis);
  }
  const Expr sum = axes.empty() ? ct : reduce_sum(ct, std::move(axes));
  return sum.type() == to ? sum.value() : call("reshape_like", sum, x).value();
}

// ---- rows of the table ----

OpDef broadcast_to_op() {
  OpDef op;
  op.name = "broadcast_to";
  op.doc = "Repeated along axes of size 1 and along new leading axes.";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<BroadcastAttrs>();
  op.traits = kAnyType;
  op.infer = broadcast_to_rule;
  set_move<broadcast>(op);
  op.vjp = [](const VjpArgs& v) -> Values { return {sum_repeated(v)}; };
  const auto shape = [](Ints sizes) { return BroadcastAttrs{.shape = std::move(sizes)}; };
  op.samples = {{.shapes = {{3, 1}}, .attrs = shape({2, 3, 4})},
                {.shapes = {{}}, .attrs = shape({2, 3})},
                {.shapes = {{5, 1, 3}}, .attrs = shape({-1, 2, 3}), .batched = {1}}};
  return op;
}

OpDef broadcast_like_op() {
  OpDef op;
  op.name = "broadcast_like";
  op.doc = "Broadcast to the shape of another value, including its examples.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "like"};
  op.linearity = Linearity::kSum;
  op.traits = kSplat | kAnyType;
  op.block = {BlockFn::kRepeat};
  op.infer = broadcast_like_rule;
  set_move<broadcast>(op);
  op.vjp = [](const VjpArgs& v) -> Values { return {sum_repeated(v), kNoValue}; };
  op.type_only = 1u << 1;
  op.samples = {{.shapes = {{3, 1}, {2, 3, 4}}, .attrs = {}},
                {.shapes = {{}, {5, 3}}, .attrs = {}, .batched = {0, 1}},
                {.shapes = {{1, 3}, {5, 3}}, .attrs = {}, .batched = {0, 1}},
                {.shapes = {{5, 1, 3}, {5, 2, 3}}, .attrs = {}, .batched = {1, 1}}};
  return op;
}

}  // namespace

std::vector<OpDef> broadcast_ops() {
  return {broadcast_to_op(), broadcast_like_op()};
}

}  // namespace samegrad
