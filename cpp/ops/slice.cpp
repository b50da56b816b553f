// Parts of a value, Python's slices, and their gradient.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

bool is_absent(std::int64_t bound) {
  return bound == INT64_MAX || bound == INT64_MIN;
}

struct Slices {
  const Ints& begin;
  const Ints& end;
  const Ints& strides;

  explicit Slices(const Attrs& attrs) : Slices(attrs.as<SliceAttrs>()) {}
  explicit Slices(const SliceAttrs& attrs)
      : begin(attrs.begin), end(attrs.end), strides(attrs.strides) {}

  SliceRange along(int axis, std::int64_t n) const {
    const auto a = std::size_t(axis);
    return slice_range(begin[a], end[a], strides[a], n);
  }
  bool takes_all(int axis) const {
    const auto a = std::size_t(axis);
    return (begin[a] == 0 || is_absent(begin[a])) && is_absent(end[a]) && strides[a] == 1;
  }
  bool turns_all(int axis) const {
    const auto a = std::size_t(axis);
    return is_absent(begin[a]) && is_absent(end[a]) && strides[a] == -1;
  }
};

void check_slices(const InferArgs& args, const ValueType& x, const Slices& s) {
  const auto rank = std::size_t(x.shape.rank());
  SG_CHECK_VALUE(s.begin.size() == rank && s.end.size() == rank && s.strides.size() == rank,
                 args.op.name, "begin, end and strides must have one entry per axis of ",
                 to_string(x.shape), ": got ", to_string(s.begin), ", ", to_string(s.end), " and ",
                 to_string(s.strides), ".");
  SG_CHECK_VALUE(std::ranges::find(s.strides, 0) == s.strides.end(), args.op.name,
                 "strides must not be 0: got ", to_string(s.strides), ".");
}

// The part of a size that follows from counts, as a symbol.
Symbol part_of(int symbol, const Slices& s, int axis) {
  const auto a = std::size_t(axis);
  Symbol part;
  part.kind = Symbol::Kind::kSlice;
  part.parts = {symbol};
  part.step = s.strides[a];
  part.begin = s.begin[a];
  part.end = s.end[a];
  if (part.step < 0) return part;
  if (is_absent(part.begin)) part.begin = 0;
  if (is_absent(part.end)) part.end = INT64_MAX;
  if (part.step == 1 && part.begin >= 0 && (part.end < 0 || part.end == INT64_MAX)) {
    // Only the number of elements left out matters: x[1:] has as many as x[:-1].
    if (part.end < 0) part.begin -= part.end;
    part.end = INT64_MAX;
  } else if (part.step == 1 && part.begin < 0 && part.end == INT64_MAX) {
    part.end = -part.begin;
    part.begin = 0;
  }
  return part;
}

// A part of an axis whose size is a symbol.
std::int64_t part_of_size(const InferArgs& args, std::int64_t dim, const Slices& s, int axis) {
  Symbol part = part_of(int(dim - kSymbols), s, axis);
  const Size whole = size_of(args.symbols, dim);
  const bool from_front = part.step == 1 && part.begin >= 0;
  if (from_front && part.end == INT64_MAX) {
    const Size rest = whole - part.begin;
    if (rest.never_negative()) return dim_of(args.symbols, rest);
  }
  if (from_front && part.end >= part.begin && (whole - part.end).never_negative()) {
    return part.end - part.begin;
  }
  return kSymbols + derived_symbol(args.symbols, std::move(part));
}

// True if a bound follows from lengths.
bool has_length(const InferArgs& args, const Slices& s, int axis) {
  const auto a = std::size_t(axis);
  return follows_lengths(args.symbols, s.begin[a]) || follows_lengths(args.symbols, s.end[a]);
}

// A bound of [0, n), as Python counts and cuts it.
Size place_of(const InferArgs& args, std::int64_t bound, const Size& n, const Size& absent) {
  if (is_absent(bound)) return absent;
  const bool from_end = bound < 0 && !is_symbolic(bound);
  const Size place = from_end ? n + bound : size_of(args.symbols, bound);
  const auto below = [&](const Size& size) {
    return decide(args.symbols, size, [](std::int64_t number) { return number < 0; });
  };
  if (!place.never_negative() && below(place)) return 0;
  return below(n - place) ? n : place;
}

// The size between bounds that follow from lengths.
std::int64_t size_between(const InferArgs& args, const ValueType& x, const Slices& s, int axis) {
  const auto a = std::size_t(axis);
  SG_CHECK_VALUE(s.strides[a] == 1, args.op.name,
                 "bounds that follow from a length go with a stride of 1: got ", s.strides[a], ".");
  const Size n = size_along(args, x, axis);
  const Size begin = place_of(args, s.begin[a], n, 0),
             size = place_of(args, s.end[a], n, n) - begin;
  const bool none = decide(args.symbols, size, [](std::int64_t number) { return number <= 0; });
  return none ? 0 : dim_of(args.symbols, size);
}

bool keeps_size(const Slices& s, int axis) {
  return s.takes_all(axis) || s.turns_all(axis);
}

// The type of a part of x.
ValueType sliced(const InferArgs& args, ValueType x, const Slices& s) {
  check_slices(args, x, s);
  if (x.batched() && !keeps_size(s, x.batch.axis)) {
    const bool cut = !has_length(args, s, x.batch.axis) && x.batch.rows_per_example == 1 &&
                     s.strides[std::size_t(x.batch.axis)] > 0;
    if (cut) {
      Symbol part = part_of(x.batch.symbol, s, x.batch.axis);
      x.batch.symbol = derived_symbol(args.symbols, std::move(part));
    } else {
      x = ordinary_type(args, x);
    }
  }
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (axis == x.batch.axis || keeps_size(s, axis)) continue;
    if (has_length(args, s, axis)) {
      x.shape[axis] = size_between(args, x, s, axis);
    } else if (is_symbolic(x.shape[axis])) {
      x.shape[axis] = part_of_size(args, x.shape[axis], s, axis);
    } else {
      x.shape[axis] = s.along(axis, x.shape[axis]).count;
    }
  }
  return x;
}

// True if each example of x has its slice.
bool keeps_examples(const ValueType& x, const Slices& s) {
  return x.batched() && s.takes_all(x.batch.axis);
}

Inferred slice_rule(const InferArgs& args) {
  const Slices s(args.attrs);
  const ValueType y = sliced(args, args.in[0], s);
  return keeps_examples(args.in[0], s) ? one_result(args, y) : Inferred{{y}, Locality::kFullBatch};
}

Inferred slice_grad_rule(const InferArgs& args) {
  const Slices s(args.attrs);
  const ValueType& ct = args.in[0];
  ValueType x = args.in[1];
  const ValueType y = sliced(args, x, s);
  SG_CHECK_VALUE(same_shape(args, y, ct), args.op.name,
                 "'ct' must have the shape of the slice of 'like': got ", args.shape_of(0),
                 " for a slice of ", args.shape_of(1), ".");
  x.dtype = ct.dtype;
  const bool by_example = keeps_examples(x, s) && ct.batch == x.batch;
  return by_example ? one_result(args, x) : Inferred{{x}, Locality::kFullBatch};
}

Move slicing(const CostArgs& args) {
  const View &x = args.in[0], &y = args.out[0];
  const Slices s(args.attrs);
  const auto from = contiguous_steps(x.shape), to = contiguous_steps(y.shape);
  Move move;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const auto a = std::size_t(axis);
    const SliceRange range = s.along(axis, x.shape[axis]);
    move.from += range.begin * from[a];
    move.copy.add_axis(range.count, to[a], range.step * from[a]);
  }
  return move;
}

// The range of a slice's elements along axis 0, in its order, within rows [begin, end) of the
// whole.
SliceRange part_in_rows(const SliceRange& all, std::int64_t begin, std::int64_t end) {
  const bool forwards = all.step > 0;
  // The number of elements before those from the row on (in the slice's direction).
  const auto before = [&](std::int64_t row) {
    const std::int64_t distance = forwards ? row - 1 - all.begin : all.begin - row;
    return distance < 0 ? 0 : std::min(all.count, distance / std::abs(all.step) + 1);
  };
  const std::int64_t first = before(forwards ? begin : end);
  return {.begin = first, .step = 1, .count = before(forwards ? end : begin) - first};
}

// Rows of the whole: zeros, and the elements of the slice that are there.
void run_slice_grad(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View &ct = args.in[0], &x = args.out[0];
  const int rank = x.shape.rank();
  const View rows = rank > 0 ? rows_of(x, begin, end) : x;
  const std::size_t bytes = std::size_t(rows.size()) * size_of(x.dtype);
  if (bytes) std::memset(rows.data, 0, bytes);
  if (ct.size() == 0) return;
  const Slices s(args.attrs);
  const auto to = contiguous_steps(x.shape), from = contiguous_steps(ct.shape);
  Move move;
  for (int axis = 0; axis < rank; ++axis) {
    const auto a = std::size_t(axis);
    const SliceRange range = s.along(axis, x.shape[axis]);
    SliceRange part{.begin = 0, .step = 1, .count = range.count};
    if (axis == 0) part = part_in_rows(range, begin, end);
    move.to += (range.begin + part.begin * range.step) * to[a];
    move.from += part.begin * from[a];
    move.copy.add_axis(part.count, range.step * to[a], from[a]);
  }
  move.run(x, ct, 0, move.copy.parts());
}

Attrs slices(Ints begin, Ints end, Ints strides) {
  return SliceAttrs{std::move(begin), std::move(end), std::move(strides)};
}

OpDef slice_op() {
  OpDef op;
  op.name = "slice";
  op.doc = "The elements begin, begin + stride, … before end of each axis, as Python's slices.";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<SliceAttrs>();
  op.traits = kAnyType;
  op.infer = slice_rule;
  set_move<slicing>(op);
  op.vjp = [](const VjpArgs& v) {
    return cotangents(call("slice_grad", Expr(v.b, v.ct[0]), Expr(v.b, v.in[0]), v.attrs));
  };
  op.samples = {{.shapes = {{4, 5}}, .attrs = slices({1, INT64_MAX}, {-1, INT64_MIN}, {1, -2})},
                {.shapes = {{5, 4, 3}},
                 .attrs = slices({INT64_MIN, 1, 0}, {INT64_MAX, 4, INT64_MAX}, {1, 2, 1}),
                 .batched = {1}},
                {.shapes = {{5, 3}}, .attrs = slices({1, 0}, {4, 2}, {2, 1}), .batched = {1}}};
  return op;
}

OpDef slice_grad_op() {
  OpDef op;
  op.name = "slice_grad";
  op.doc = "Zeros in the shape of another value, with the slice of them filled.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"ct", "like"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<SliceAttrs>();
  op.traits = kBackward | kAnyType;
  op.infer = slice_grad_rule;
  set_parts<rows_of_result, run_slice_grad>(op);
  op.scratch_bytes = no_scratch;
  op.vjp = [](const VjpArgs& v) {
    return cotangents(call("slice", Expr(v.b, v.ct[0]), v.attrs), none());
  };
  op.type_only = 1u << 1;
  op.samples = {
      {.shapes = {{2, 3}, {4, 5}}, .attrs = slices({1, INT64_MAX}, {-1, INT64_MIN}, {1, -2})},
      {.shapes = {{5, 2, 3}, {5, 4, 3}},
       .attrs = slices({INT64_MIN, 1, 0}, {INT64_MAX, 4, INT64_MAX}, {1, 2, 1}),
       .batched = {1, 1}}};
  return op;
}

}  // namespace

std::vector<OpDef> slice_ops() {
  return {slice_op(), slice_grad_op()};
}

}  // namespace samegrad
