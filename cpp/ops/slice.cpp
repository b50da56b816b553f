// Parts of a value, Python's slices, and their gradient.
#include <algorithm>
#include <cstring>

#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rules.h"
#include "ops/strided.h"

namespace samegrad {
namespace {

using Ints = std::vector<std::int64_t>;

bool is_absent(std::int64_t bound) {
  return bound == INT64_MAX || bound == INT64_MIN;
}

// The indices begin, begin + step, … of an axis.
struct Range {
  std::int64_t begin, step, count;
};

Range range_of(std::int64_t begin, std::int64_t end, std::int64_t step, std::int64_t n) {
  // A walk backwards may stop before the first element.
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto bound = [&](std::int64_t at, std::int64_t absent) {
    return is_absent(at) ? absent : std::clamp(at < 0 ? at + n : at, low, high);
  };
  const std::int64_t first = bound(begin, step > 0 ? low : high);
  const std::int64_t last = bound(end, step > 0 ? high : low);
  const std::int64_t distance = step > 0 ? last - first : first - last;
  const std::int64_t width = step > 0 ? step : -step;
  return {first, step, distance > 0 ? (distance + width - 1) / width : 0};
}

struct Slices {
  const Ints& begin;
  const Ints& end;
  const Ints& strides;

  explicit Slices(const Attrs& attrs)
      : begin(attrs.integers("begin")),
        end(attrs.integers("end")),
        strides(attrs.integers("strides")) {}

  Range along(int axis, std::int64_t n) const {
    const auto a = std::size_t(axis);
    return range_of(begin[a], end[a], strides[a], n);
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
  check_value(s.begin.size() == rank && s.end.size() == rank && s.strides.size() == rank,
              args.op.name, "begin, end and strides must have one entry per axis of ",
              to_string(x.shape), ": got ", to_string(AttrValue(s.begin)), ", ",
              to_string(AttrValue(s.end)), " and ", to_string(AttrValue(s.strides)), ".");
  check_value(std::ranges::find(s.strides, 0) == s.strides.end(), args.op.name,
              "strides must not be 0: got ", to_string(AttrValue(s.strides)), ".");
}

// The type of a part of x.
ValueType sliced(const InferArgs& args, ValueType x, const Slices& s) {
  check_slices(args, x, s);
  const int examples = x.batch.axis;
  if (x.batched() && !s.takes_all(examples) && !s.turns_all(examples)) {
    const auto a = std::size_t(examples);
    if (x.batch.rows_per_example == 1 && s.strides[a] > 0) {
      Symbol part;
      part.kind = Symbol::Kind::kSlice;
      part.parts = {x.batch.symbol};
      part.begin = is_absent(s.begin[a]) ? 0 : s.begin[a];
      part.end = is_absent(s.end[a]) ? INT64_MAX : s.end[a];
      part.step = s.strides[a];
      x.batch.symbol = derived_symbol(args, std::move(part));
    } else {
      x = fixed_type(args, x);
    }
  }
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (axis != x.batch.axis) x.shape[axis] = s.along(axis, x.shape[axis]).count;
  }
  return x;
}

// Whether rows of x can be cut into tiles.
bool keeps_examples(const ValueType& x, const Slices& s) {
  return x.batch.axis == 0 && s.takes_all(0);
}

Inferred slice_rule(const InferArgs& args) {
  const Slices s(args.attrs);
  const ValueType y = sliced(args, args.in[0], s);
  return {{y}, keeps_examples(args.in[0], s) ? Locality::kExample : Locality::kWhole};
}

Inferred slice_grad_rule(const InferArgs& args) {
  const Slices s(args.attrs);
  const ValueType& ct = args.in[0];
  ValueType x = args.in[1];
  const ValueType y = sliced(args, x, s);
  bool ok = y.shape.rank() == ct.shape.rank();
  for (int axis = 0; ok && axis < y.shape.rank(); ++axis) {
    ok = traced_size(args, y, axis) == traced_size(args, ct, axis);
  }
  check_value(ok, args.op.name, "'ct' must have the shape of the slice of 'like': got ",
              args.shape_of(0), " for a slice of ", args.shape_of(1), ".");
  x.dtype = ct.dtype;
  const bool by_example = keeps_examples(x, s) && ct.batch == x.batch;
  return {{x}, by_example ? Locality::kExample : Locality::kWhole};
}

// Walks the part of `whole` together with `part`, which is contiguous.
void copy_part(const Attrs& attrs, const View& whole, const View& part, bool into_whole) {
  if (part.size() == 0) return;
  const Slices s(attrs);
  const auto whole_steps = contiguous_steps(whole.shape);
  const auto part_steps = contiguous_steps(part.shape);
  StridedCopy copy;
  std::int64_t first = 0;
  for (int axis = 0; axis < whole.shape.rank(); ++axis) {
    const auto a = std::size_t(axis);
    const Range range = s.along(axis, whole.shape[axis]);
    first += range.begin * whole_steps[a];
    const std::int64_t step = range.step * whole_steps[a];
    if (into_whole) {
      copy.add_axis(range.count, step, part_steps[a]);
    } else {
      copy.add_axis(range.count, part_steps[a], step);
    }
  }
  const std::size_t item = size_of(whole.dtype);
  char* at = whole.as<char>() + first * std::int64_t(item);
  into_whole ? copy.run(at, part.data, item) : copy.run(part.data, at, item);
}

void slice_kernel(const KernelArgs& args) {
  copy_part(args.attrs, args.in[0], args.out[0], false);
}

void slice_grad_kernel(const KernelArgs& args) {
  const View& x = args.out[0];
  const std::size_t bytes = std::size_t(x.size()) * size_of(x.dtype);
  if (bytes) std::memset(x.data, 0, bytes);
  copy_part(args.attrs, x, args.in[0], true);
}

Attrs slices(Ints begin, Ints end, Ints strides) {
  return {{"begin", std::move(begin)}, {"end", std::move(end)}, {"strides", std::move(strides)}};
}

std::vector<AttrSpec> slice_attrs() {
  return {{"begin", AttrKind::kIntegers, "First index per axis; INT64_MIN or INT64_MAX: absent."},
          {"end", AttrKind::kIntegers, "Index after the last; INT64_MIN or INT64_MAX: absent."},
          {"strides", AttrKind::kIntegers, "Steps; negative ones walk backwards."}};
}

OpDef slice_row() {
  OpDef op;
  op.name = "slice";
  op.doc = "The elements begin, begin + stride, … before end of each axis, as Python's slices.";
  op.operands = {"x"};
  op.scaling = Scaling::kSum;
  op.attrs = slice_attrs();
  op.infer = slice_rule;
  op.kernel = slice_kernel;
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

OpDef slice_grad_row() {
  OpDef op;
  op.name = "slice_grad";
  op.doc = "Zeros in the shape of another value, with the slice of them filled.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"ct", "like"};
  op.scaling = Scaling::kSum;
  op.attrs = slice_attrs();
  op.traits = kBackward;
  op.infer = slice_grad_rule;
  op.kernel = slice_grad_kernel;
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

int derived_symbol(const InferArgs& args, Symbol symbol) {
  std::vector<Symbol>& symbols = args.symbols;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].same_rule(symbol)) return int(i);
  }
  std::vector<std::int64_t> counts;
  for (const Symbol& s : symbols) counts.push_back(s.traced_count);
  counts.push_back(symbol.traced_count);
  symbols.push_back(std::move(symbol));
  complete_counts(symbols, counts);
  symbols.back().traced_count = counts.back();
  return int(symbols.size() - 1);
}

std::vector<OpDef> slice_ops() {
  return {slice_row(), slice_grad_row()};
}

}  // namespace samegrad
