// Repetition: broadcasting, tiling, repeating.
#include <algorithm>
#include <array>
#include <cstring>

#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

using Ints = std::vector<std::int64_t>;

// ---- shapes ----

Inferred broadcast_to_rule(const InferArgs& args) {
  const Ints& wanted = args.attrs.integers("shape");
  ValueType x = args.in[0];
  const int missing = int(wanted.size()) - x.shape.rank();
  const auto fail_shapes = [&args, &wanted] {
    fail(ErrorKind::kValue, args.op.name, "shape ", args.shape_of(0), " does not broadcast to ",
         to_string(AttrValue(wanted)), ": sizes must be equal, 1 or kept by -1.");
  };
  if (missing < 0) fail_shapes();
  ValueType y{x.dtype, {}, {}};
  for (int axis = 0; axis < int(wanted.size()); ++axis) {
    const std::int64_t dim = wanted[std::size_t(axis)];
    const int own = axis - missing;
    const std::int64_t size = own >= 0 ? traced_size(args, x, own) : 1;
    if (dim >= 0 ? size != dim && size != 1 : own < 0) fail_shapes();
    const bool examples = own >= 0 && x.batch.axis == own;
    if (examples && dim >= 0) fixed_type(args, x);
    if (examples && (dim < 0 || dim == size)) {
      y.batch = x.batch;
      y.batch.axis = axis;
      y.shape.push_back(kRows);
    } else {
      y.shape.push_back(dim < 0 ? size : dim);
    }
  }
  return x.batched() && !y.batched() ? Inferred{{y}, Locality::kWhole} : one_result(args, y);
}

Inferred broadcast_like_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  ValueType y = args.in[1];
  y.dtype = x.dtype;
  const int missing = y.shape.rank() - x.shape.rank();
  bool whole = missing < 0;
  bool ok = missing >= 0;
  for (int axis = 0; ok && axis < x.shape.rank(); ++axis) {
    const std::int64_t own = traced_size(args, x, axis);
    const bool has = x.batched() && x.batch.axis == axis;
    const bool like_has = y.batched() && y.batch.axis == axis + missing;
    ok = own == traced_size(args, y, axis + missing) || own == 1;
    const bool same = has && like_has && x.batch.symbol == y.batch.symbol &&
                      x.batch.rows_per_example == y.batch.rows_per_example;
    if (!(has || like_has) || same || (like_has && !has && x.shape[axis] == 1)) continue;
    if (has) fixed_type(args, x);
    if (like_has) fixed_type(args, y);
    whole = true;
  }
  check_value(ok, args.op.name, "shape ", args.shape_of(0), " does not broadcast to ",
              args.shape_of(1), ": sizes must be equal or 1.");
  return whole ? Inferred{{y}, Locality::kWhole} : one_result(args, y);
}

// ---- kernels ----

// How one axis (or several merged ones) of the result reads x: step 0 repeats.
struct Repetition {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> size;
  std::array<std::int64_t, kMaxRank> step;  // in elements of x; axis 0 is the outermost

  Repetition(const Shape& x, const Shape& y) {
    const int missing = y.rank() - x.rank();
    for (int axis = 0; axis < y.rank(); ++axis) {
      const std::int64_t own = axis >= missing ? x[axis - missing] : 1;
      const bool repeats = own == 1;
      if (y[axis] == 1) continue;
      if (rank > 0 && (step[std::size_t(rank - 1)] == 0) == repeats) {
        size[std::size_t(rank - 1)] *= y[axis];
      } else {
        size[std::size_t(rank)] = y[axis];
        step[std::size_t(rank++)] = repeats ? 0 : 1;
      }
    }
    std::int64_t elements = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const auto s = std::size_t(i);
      if (step[s] == 0) continue;
      step[s] = elements;
      elements *= size[s];
    }
  }
};

template <class T>
T* repeat(const Repetition& r, int axis, const T* x, T* y) {
  const auto s = std::size_t(axis);
  if (axis == r.rank) {
    *y = *x;
    return y + 1;
  }
  if (axis + 1 == r.rank) {
    if (r.step[s] == 0) return std::fill_n(y, r.size[s], *x);
    std::memcpy(y, x, std::size_t(r.size[s]) * sizeof(T));
    return y + r.size[s];
  }
  T* const first = repeat(r, axis + 1, x, y);
  const std::int64_t part = first - y;
  T* at = first;
  for (std::int64_t i = 1; i < r.size[s]; ++i) {
    if (r.step[s] != 0) {
      at = repeat(r, axis + 1, x + i * r.step[s], at);
    } else {
      std::memcpy(at, y, std::size_t(part) * sizeof(T));
      at += part;
    }
  }
  return at;
}

void broadcast_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  if (y.size() == 0) return;
  const Repetition r(x.shape, y.shape);
  switch (size_of(x.dtype)) {
    case 8:
      repeat(r, 0, x.as<std::uint64_t>(), y.as<std::uint64_t>());
      break;
    case 4:
      repeat(r, 0, x.as<std::uint32_t>(), y.as<std::uint32_t>());
      break;
    default:
      repeat(r, 0, x.as<std::uint8_t>(), y.as<std::uint8_t>());
  }
}

// ---- gradients ----

// Sums over the axes along which x was repeated.
Value sum_repeated(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]), ct(v.b, v.ct[0]);
  const ValueType from = ct.type(), to = x.type();
  const int missing = from.shape.rank() - to.shape.rank();
  Ints axes;
  for (int axis = 0; axis < from.shape.rank(); ++axis) {
    const bool one = axis < missing || to.shape[axis - missing] == 1;
    if (axis < missing || (one && from.shape[axis] != 1)) axes.push_back(axis);
  }
  const Expr sum = axes.empty() ? ct : reduce_sum(ct, std::move(axes));
  return sum.type() == to ? sum.value() : call("reshape_like", sum, x).value();
}

// ---- rows of the table ----

OpDef broadcast_to_row() {
  OpDef op;
  op.name = "broadcast_to";
  op.doc = "Repeated along axes of size 1 and along new leading axes.";
  op.operands = {"x"};
  op.attrs = {{"shape", AttrKind::kIntegers, "Sizes of the result; -1: as in x."}};
  op.infer = broadcast_to_rule;
  op.kernel = broadcast_kernel;
  op.vjp = [](const VjpArgs& v) -> Values { return {sum_repeated(v)}; };
  const auto shape = [](Ints sizes) { return Attrs{{"shape", std::move(sizes)}}; };
  op.samples = {{.shapes = {{3, 1}}, .attrs = shape({2, 3, 4})},
                {.shapes = {{}}, .attrs = shape({2, 3})},
                {.shapes = {{5, 1, 3}}, .attrs = shape({-1, 2, 3}), .batched = {1}}};
  return op;
}

OpDef broadcast_like_row() {
  OpDef op;
  op.name = "broadcast_like";
  op.doc = "Repeated to the shape of another value, over its examples too.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "like"};
  op.infer = broadcast_like_rule;
  op.kernel = broadcast_kernel;
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
  return {broadcast_to_row(), broadcast_like_row()};
}

}  // namespace samegrad
