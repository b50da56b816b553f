// Values side by side, and room around a value.
#include <algorithm>
#include <cstring>

#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

// ---- concat ----

int axis_of(const Attrs& attrs, const Shape& shape) {
  return normalize_axis(attrs.as<ConcatAttrs>().axis, shape.rank(), "concat");
}

void check_sizes(const InferArgs& args, int axis) {
  const int rank = args.in[0].shape.rank();
  for (const ValueType& type : args.in) {
    bool ok = type.shape.rank() == rank;
    for (int i = 0; ok && i < rank; ++i) {
      ok = i == axis || same_size(args, size_along(args, type, i), size_along(args, args.in[0], i));
    }
    SG_CHECK_VALUE(ok, args.op.name, "shapes must agree on all axes but ", axis, ": got ",
                   shapes_of_operands(args), ".");
  }
}

// All operands have their examples on the concatenated axis.
bool joins_examples(std::span<const ValueType> in, int axis) {
  return std::ranges::all_of(in, [&](const ValueType& type) {
    return type.batch.axis == axis && type.batch.rows_per_example == in[0].batch.rows_per_example;
  });
}

// The examples of the result; none if the operands' do not fit together.
ExampleAxis common_examples(std::span<const ValueType> in, int axis) {
  ExampleAxis found;
  for (const ValueType& type : in) {
    if (!type.batched()) continue;
    if (type.batch.axis == axis || (found.exists() && type.batch != found)) return {};
    found = type.batch;
  }
  return found;
}

Inferred concat_rule(const InferArgs& args) {
  check_same_dtype(args, 0, int(args.in.size()));
  const int axis = axis_of(args.attrs, args.in[0].shape);
  check_sizes(args, axis);
  ValueType y = args.in[0];
  if (joins_examples(args.in, axis)) {
    Symbol sum;
    sum.kind = Symbol::Kind::kSum;
    for (const ValueType& type : args.in) sum.parts.push_back(type.batch.symbol);
    if (args.in.size() > 1) y.batch.symbol = derived_symbol(args.symbols, std::move(sum));
    return {{y}, Locality::kFullBatch};
  }
  const ExampleAxis examples = common_examples(args.in, axis);
  const bool aligned =
      std::ranges::all_of(args.in, [&](const ValueType& type) { return type.batch == examples; });
  Size size;
  for (const ValueType& type : args.in) size = size + size_along(args, type, axis);
  y = ordinary_type(args, y);
  y.shape[axis] = dim_of(args.symbols, size);
  y.batch = examples;
  if (examples.exists()) y.shape[examples.axis] = kBatchDim;
  return aligned ? one_result(args, y) : Inferred{{y}, Locality::kFullBatch};
}

// Copies elements [begin, end) of the whole from the pieces that are side by side in its rows, or
// into them.
void copy_pieces(const View& whole, std::span<const View> pieces, int axis, bool into_whole,
                 std::int64_t begin, std::int64_t end) {
  const auto item = std::int64_t(size_of(whole.dtype));
  const std::int64_t width = whole.shape.size(axis, whole.shape.rank());
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t row = at / width;
    std::int64_t first = row * width;
    for (const View& piece : pieces) {
      const std::int64_t part = piece.shape.size(axis, piece.shape.rank());
      const std::int64_t from = std::max(at, first), to = std::min(end, first + part);
      if (from < to) {
        char* there = whole.as<char>() + from * item;
        char* own = piece.as<char>() + (row * part + from - first) * item;
        std::memcpy(into_whole ? there : own, into_whole ? own : there,
                    std::size_t((to - from) * item));
      }
      first += part;
    }
    at = first;
  }
}

void run_concat(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& y = args.out[0];
  copy_pieces(y, args.in, axis_of(args.attrs, y.shape), true, begin, end);
}

// A slice of the cotangent; where examples are joined, a row that knows all counts.
Values concat_vjp(const VjpArgs& v) {
  const Expr ct(v.b, v.ct[0]);
  const int axis = axis_of(v.attrs, ct.type().shape);
  const bool counted = std::ranges::any_of(v.in, [&](Value operand) {
    const ValueType& type = v.b.type(operand);
    const std::int64_t size = type.shape[axis];
    return type.batch.axis == axis ||
           (is_symbolic(size) && !follows_lengths(v.b.graph().symbols, size));
  });
  if (counted || ct.type().batch.axis == axis) {
    std::vector<Value> operands{v.ct[0]};
    operands.insert(operands.end(), v.in.begin(), v.in.end());
    return v.b.apply(OpRegistry::instance().get("concat_grad"), operands, v.attrs);
  }
  const auto rank = std::size_t(ct.type().shape.rank());
  Symbols& symbols = v.b.graph().symbols;
  Size first;
  Values gradients;
  for (Value operand : v.in) {
    const Expr x(v.b, operand);
    const ValueType type = x.type();
    Ints begin(rank, INT64_MIN), end(rank, INT64_MAX), strides(rank, 1);
    begin[std::size_t(axis)] = dim_of(symbols, first);
    first = first + size_of(symbols, type.shape[axis]);
    end[std::size_t(axis)] = dim_of(symbols, first);
    const Expr part =
        call("slice", ct,
             SliceAttrs{
                 .begin = std::move(begin), .end = std::move(end), .strides = std::move(strides)});
    gradients.push_back((part.type() == type ? part : call("reshape_like", part, x)).value());
  }
  return gradients;
}

OpDef concat_op() {
  OpDef op;
  op.name = "concat";
  op.doc = "Values one after the other along an axis (of examples too: those of all).";
  op.max_arity = -1;
  op.operands = {"xs"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<ConcatAttrs>();
  op.traits = kAnyType;
  op.infer = concat_rule;
  set_parts<elements_of_result, run_concat>(op);
  op.scratch_bytes = no_scratch;
  op.vjp = concat_vjp;
  const auto axis = [](std::int64_t a) { return ConcatAttrs{.axis = a}; };
  op.samples = {{.shapes = {{2, 3}, {2, 1}, {2, 2}}, .attrs = axis(-1)},
                {.shapes = {{2, 3}, {1, 3}}, .attrs = axis(0)},
                {.shapes = {{5, 3}, {5, 2}}, .attrs = axis(1), .batched = {1, 1}},
                {.shapes = {{5, 3}, {5, 3}}, .attrs = axis(0), .batched = {1, 1}}};
  return op;
}

// The sizes of the trace: where they agree, those of all counts do.
void check_parts(const InferArgs& args) {
  const ValueType& whole = args.in[0];
  const int rank = whole.shape.rank(), joined = axis_of(args.attrs, whole.shape);
  const auto counts = traced_counts(args.symbols);
  const auto agrees = [&](const Size& difference) {
    return std::ranges::all_of(counts, [&](const auto& c) { return difference.value(c) == 0; });
  };
  Size left = size_along(args, whole, joined);
  bool ok = true;
  for (const ValueType& part : args.in.subspan(1)) {
    ok = ok && part.shape.rank() == rank;
    for (int axis = 0; ok && axis < rank; ++axis) {
      const Size size = size_along(args, part, axis);
      if (axis == joined) {
        left = left - size;
      } else {
        ok = agrees(size_along(args, whole, axis) - size);
      }
    }
  }
  SG_CHECK_VALUE(ok && agrees(left), args.op.name, "the parts must make 'ct' along axis ", joined,
                 ": got ", shapes_of_operands(args), ".");
}

Inferred concat_grad_rule(const InferArgs& args) {
  check_parts(args);
  Inferred inferred;
  for (std::size_t i = 1; i < args.in.size(); ++i) {
    inferred.types.push_back(args.in[i]);
    inferred.types.back().dtype = args.in[0].dtype;
  }
  return inferred;
}

std::int64_t elements_of_operand(const CostArgs& args) {
  return args.in[0].size();
}

void run_concat_grad(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& ct = args.in[0];
  copy_pieces(ct, args.out, axis_of(args.attrs, ct.shape), false, begin, end);
}

Values concat_grad_vjp(const VjpArgs& v) {
  std::vector<Value> pieces;
  for (std::size_t i = 0; i < v.ct.size(); ++i) {
    const bool flows = v.ct[i] != kNoValue;
    pieces.push_back(flows ? v.ct[i] : zeros_like(Expr(v.b, v.in[i + 1])).value());
  }
  Values result(v.in.size(), kNoValue);
  result[0] = v.b.apply(OpRegistry::instance().get("concat"), pieces, v.attrs)[0];
  return result;
}

OpDef concat_grad_op() {
  OpDef op;
  op.name = "concat_grad";
  op.doc = "The parts of a concatenation, one for each of the values it was made of.";
  op.min_arity = 2;
  op.max_arity = 32;
  op.operands = {"ct", "likes"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<ConcatAttrs>();
  op.traits = kBackward | kAnyType;
  op.infer = concat_grad_rule;
  set_parts<elements_of_operand, run_concat_grad>(op);
  op.scratch_bytes = no_scratch;
  op.vjp = concat_grad_vjp;
  op.type_only = ~1u;
  op.samples = {{.shapes = {{3, 2}, {1, 2}, {2, 2}}, .attrs = ConcatAttrs{.axis = 0}}};
  return op;
}

// ---- pad ----

Inferred pad_rule(const InferArgs& args) {
  ValueType x = args.in[0];
  const Ints& paddings = args.attrs.as<PadAttrs>().paddings;
  const bool ok = paddings.size() == 2 * std::size_t(x.shape.rank()) &&
                  std::ranges::all_of(paddings, [](std::int64_t p) { return p >= 0; });
  SG_CHECK_VALUE(ok, args.op.name, "paddings must be two sizes of 0 or more per axis of ",
                 args.shape_of(0), ": got ", to_string(paddings), ".");
  const auto added = [&](int axis) {
    return size_sum(paddings[2 * std::size_t(axis)], paddings[2 * std::size_t(axis) + 1]);
  };
  const bool examples = x.batched() && added(x.batch.axis) > 0;
  if (examples) x = ordinary_type(args, x);
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (axis == x.batch.axis) continue;
    x.shape[axis] = dim_of(args.symbols, size_along(args, x, axis) + added(axis));
  }
  Inferred inferred = examples ? Inferred{{x}, Locality::kFullBatch} : one_result(args, x);
  inferred.linear = args.attrs.as<PadAttrs>().value.as<double>() == 0;
  return inferred;
}

// Rows [begin, end) of the result.
void run_pad(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View &x = args.in[0], &y = args.out[0];
  const int rank = x.shape.rank();
  const Ints& paddings = args.attrs.as<PadAttrs>().paddings;
  fill_value(rank > 0 ? rows_of(y, begin, end) : y, args.attrs.as<PadAttrs>().value);
  if (x.size() == 0) return;
  const auto from = contiguous_steps(x.shape), to = contiguous_steps(y.shape);
  Move move;
  for (int axis = 0; axis < rank; ++axis) {
    const auto a = std::size_t(axis);
    const std::int64_t before = paddings[2 * a], size = x.shape[axis];
    const std::int64_t first = axis == 0 ? std::clamp<std::int64_t>(begin - before, 0, size) : 0;
    const std::int64_t last = axis == 0 ? std::clamp<std::int64_t>(end - before, 0, size) : size;
    move.to += (before + first) * to[a];
    move.from += first * from[a];
    move.copy.add_axis(last - first, to[a], from[a]);
  }
  move.run(y, x, 0, move.copy.parts());
}

Values pad_vjp(const VjpArgs& v) {
  const Ints& paddings = v.attrs.as<PadAttrs>().paddings;
  Ints begin, end;
  for (std::size_t i = 0; i < paddings.size(); i += 2) {
    begin.push_back(paddings[i] ? paddings[i] : INT64_MIN);
    end.push_back(paddings[i + 1] ? -paddings[i + 1] : INT64_MAX);
  }
  Ints strides(begin.size(), 1);
  const Expr x(v.b, v.in[0]);
  const Expr part = call(
      "slice", Expr(v.b, v.ct[0]),
      SliceAttrs{.begin = std::move(begin), .end = std::move(end), .strides = std::move(strides)});
  return cotangents(part.type() == x.type() ? part : call("reshape_like", part, x));
}

OpDef pad_op() {
  OpDef op;
  op.name = "pad";
  op.doc = "The value with a number put before and after it along each axis.";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.attrs = schema_of<PadAttrs>();
  op.traits = kAnyType;
  op.infer = pad_rule;
  set_parts<rows_of_result, run_pad>(op);
  op.scratch_bytes = no_scratch;
  op.vjp = pad_vjp;
  op.samples = {{.shapes = {{2, 3}}, .attrs = PadAttrs{.paddings = {1, 0, 2, 1}, .value = 0.5}},
                {.shapes = {{5, 3, 2}},
                 .attrs = PadAttrs{.paddings = {0, 0, 1, 2, 0, 1}, .value = 0.0},
                 .batched = {1}}};
  return op;
}

}  // namespace

std::vector<OpDef> concat_ops() {
  return {concat_op(), concat_grad_op(), pad_op()};
}

}  // namespace samegrad
