// Helpers that shape rules and derivatives of matrix ops share.
#include "ops/linalg.h"
#include "ops/rules.h"

namespace samegrad {

ValueType matrix_type(const InferArgs& args, int operand) {
  check_dtype(args, operand, kFloats);
  check_min_rank(args, operand, 2);
  const ValueType& type = args.in[std::size_t(operand)];
  const int rank = type.shape.rank();
  return type.batch.axis >= rank - 2 ? ordinary_type(args, type) : type;
}

ValueType square_type(const InferArgs& args, int operand) {
  const ValueType type = matrix_type(args, operand);
  const int rank = type.shape.rank();
  const bool square =
      same_size(args, size_along(args, type, rank - 2), size_along(args, type, rank - 1));
  SG_CHECK_VALUE(square, args.op.name, "matrices must be square: got shape ",
                 args.shape_of(operand), ".");
  return type;
}

ValueType with_sizes(const ValueType& type, std::initializer_list<std::int64_t> sizes) {
  ValueType result{type.dtype, {}, type.batch};
  for (int axis = 0; axis + 2 < type.shape.rank(); ++axis) result.shape.push_back(type.shape[axis]);
  for (const std::int64_t size : sizes) result.shape.push_back(size);
  return result;
}

std::int64_t smaller_size(const InferArgs& args, const ValueType& type) {
  const int rank = type.shape.rank();
  const Size rest = size_along(args, type, rank - 2) - size_along(args, type, rank - 1);
  const bool wide = decide(args.symbols, rest, [](std::int64_t more) { return more <= 0; });
  return type.shape[rank - (wide ? 2 : 1)];
}

Inferred by_matrix(const InferArgs& args, std::vector<ValueType> results) {
  bool together = true;  // examples are matrices in all operands, or in none
  for (const ValueType& type : args.in) {
    together = together && (!type.batched() || type.batch == results[0].batch);
    together = together && (type.batched() || !results[0].batched());
  }
  const Locality locality = together ? per_example(args.in, results) : Locality::kFullBatch;
  return {std::move(results), locality};
}

namespace {

std::vector<std::int64_t> swapped_axes(Expr x) {
  const int rank = x.type().shape.rank();
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis + 2 < rank; ++axis) axes.push_back(axis);
  axes.push_back(rank - 1);
  axes.push_back(rank - 2);
  return axes;
}

Expr places(Expr x, int axis) {
  Builder& b = x.builder();
  return {b, b("iota", {x.value()}, SizeAttrs{.size = dim(x, axis)})};
}

// Column minus row of each element of a matrix.
Expr offsets(Expr x) {
  const int rank = x.type().shape.rank();
  return places(x, rank - 1) -
         call("expand_dims", places(x, rank - 2), ExpandDimsAttrs{.axes = {1}});
}

}  // namespace

Expr turned(Expr x) {
  return call("transpose", x, TransposeAttrs{.perm = swapped_axes(x)});
}

Expr lower_triangle(Expr x, int k) {
  return select(offsets(x) <= double(k), x, 0.0);
}

Expr upper_triangle(Expr x, int k) {
  return select(offsets(x) >= double(k), x, 0.0);
}

Expr diagonal(Expr x) {
  return reduce_sum(select(offsets(x) == 0.0, x, 0.0), {x.type().shape.rank() - 1});
}

Expr identity_like(Expr x) {
  return cast(offsets(x) == 0.0, x.dtype());
}

Expr as_column(Expr x) {
  return call("expand_dims", x, ExpandDimsAttrs{.axes = {x.type().shape.rank()}});
}

Expr as_row(Expr x) {
  return call("expand_dims", x, ExpandDimsAttrs{.axes = {x.type().shape.rank() - 1}});
}

Expr inverse_or_zero(Expr x) {
  const Expr apart = x != 0.0;
  return select(apart, 1.0 / select(apart, x, 1.0), 0.0);
}

}  // namespace samegrad
