// Other shapes for the same bytes.
#include <algorithm>
#include <optional>

#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

constexpr std::int64_t kInferred = -1;
// The axis of examples, where -1 is wanted for another axis.
constexpr std::int64_t kExamples = -2;

// The result has the sizes that are wanted; the axis among them that counts the same examples as x,
// if there is one, stays the axis of examples.
class ReshapeRule {
 public:
  explicit ReshapeRule(const InferArgs& args)
      : args_(args), x_(args.in[0]), wanted_(args.attrs.as<ReshapeAttrs>().shape) {
    for (std::int64_t dim : wanted_) {
      SG_CHECK_VALUE(dim >= kExamples || is_symbolic(dim), args.op.name,
                     "sizes must be 0 or more, -1 (to be inferred) or "
                     "-2 (the examples): got ",
                     printed(), ".");
    }
  }

  Inferred infer() {
    find_sizes();
    ValueType y{x_.dtype, {}, {}};
    for (const Size& size : sizes_) y.shape.push_back(dim_of(args_.symbols, size));
    if (x_.batched() && keep_examples(y)) return one_result(args_, y);
    return {{y}, Locality::kFullBatch};
  }

 private:
  Size product(const ValueType& type, int first, int last) const {
    Size all = 1;
    for (int axis = first; axis < last; ++axis) all = all * size_along(args_, type, axis);
    return all;
  }

  // Finds the requested sizes, with -1 and -2 resolved.
  void find_sizes() {
    const Size elements = product(x_, 0, x_.shape.rank());
    int missing = -1;
    Size known = 1;
    const bool inferred = std::ranges::find(wanted_, kInferred) != wanted_.end();
    for (int axis = 0; axis < int(wanted_.size()); ++axis) {
      const std::int64_t dim = wanted_[std::size_t(axis)];
      Size size = dim < 0 && !is_symbolic(dim) ? Size(0) : size_of(args_.symbols, dim);
      if (dim == kExamples && inferred) {
        size = examples_at(axis);
      } else if (dim == kInferred || dim == kExamples) {
        if (missing >= 0) fail_two();
        missing = axis;
      }
      sizes_.push_back(size);
      if (missing != axis) known = known * size;
    }
    if (missing >= 0) {
      sizes_[std::size_t(missing)] = quotient(elements, known, missing);
    } else if (!same_size(args_, elements, known)) {
      fail_size();
    }
  }

  // The size of a -2 next to an axis that is inferred.
  Size examples_at(int axis) const {
    const int own = x_.batched() ? x_.batch.axis : axis;
    if (own >= x_.shape.rank()) fail_two();
    return size_along(args_, x_, own);
  }

  Size quotient(const Size& elements, const Size& known, int axis) const {
    if (known == Size(0)) {
      if (wanted_[std::size_t(axis)] == kExamples && x_.batched()) return examples_at(axis);
      fail_size();
    }
    if (const auto exact = elements.over(known)) return *exact;
    if (const auto rows = rows_by_lengths(known)) return *rows;
    const std::int64_t all = fixed_size(args_, elements), part = fixed_size(args_, known);
    if (part == 0 || all % part != 0) x_.batched() ? fail_cut(part) : fail_size();
    return all / part;
  }

  // Takes the lengths of one example for granted, and not how many examples there are.
  std::optional<Size> rows_by_lengths(const Size& known) const {
    if (!x_.batched() || !known.number() || example_elements().number()) return std::nullopt;
    const std::int64_t elements = fixed_size(args_, example_elements());
    if (elements % *known.number() != 0) return std::nullopt;
    return product(x_, 0, x_.batch.axis) * size_of_symbol(args_.symbols, x_.batch.symbol) *
           Size(elements / *known.number());
  }

  // The examples go to the first axis with as many elements before it as x has before its examples,
  // and with a size that follows them.
  bool keep_examples(ValueType& y) const {
    const Size before = product(x_, 0, x_.batch.axis);
    const Size count = size_of_symbol(args_.symbols, x_.batch.symbol);
    Size product = 1;
    for (int axis = 0; axis < y.shape.rank(); ++axis) {
      const std::optional<Size> rows = rows_of(sizes_[std::size_t(axis)], count);
      if (product == before && rows && cuts(axis, *rows)) {
        y.batch = x_.batch;
        y.batch.axis = axis;
        y.batch.rows_per_example = dim_of(args_.symbols, *rows);
        y.shape[axis] = kBatchDim;
        return true;
      }
      product = product * sizes_[std::size_t(axis)];
    }
    return false;
  }

  // Rows per example of an axis of this size; a number may be that of the trace's examples.
  std::optional<Size> rows_of(const Size& size, const Size& count) const {
    if (const auto quotient = size.over(count)) {
      if (const auto rows = quotient->number()) return *rows > 0 ? quotient : std::nullopt;
      const bool length = follows_lengths(args_.symbols, *quotient) &&
                          decide(args_.symbols, *quotient, [](std::int64_t n) { return n > 0; });
      return length ? quotient : std::nullopt;
    }
    const auto number = size.number();
    const auto traced = bound_count(args_.symbols, x_.batch.symbol);
    if (!number || !traced || *traced == 0 || *number % *traced != 0) return std::nullopt;
    return *number > 0 ? std::optional<Size>(*number / *traced) : std::nullopt;
  }

  // True if so many rows, with the axes after them, are one example.
  bool cuts(int axis, const Size& rows) const {
    Size all = rows;
    for (std::size_t i = std::size_t(axis) + 1; i < sizes_.size(); ++i) all = all * sizes_[i];
    const Size elements = example_elements();
    return all == elements ||
           (all.number() && !elements.number() && same_size(args_, all, elements));
  }

  // Elements of one example for each position before its axis.
  Size example_elements() const {
    return size_of(args_.symbols, x_.batch.rows_per_example) *
           product(x_, x_.batch.axis + 1, x_.shape.rank());
  }

  std::string printed() const { return to_string(wanted_); }

  [[noreturn]] void fail_two() const {
    fail(ErrorKind::kValue, args_.op.name, "only one size can be inferred: got ", printed(),
         "; give the others (-2 stands for the examples).");
  }
  [[noreturn]] void fail_size() const {
    fail(ErrorKind::kValue, args_.op.name, "shape ", args_.shape_of(0), " does not have the ",
         "number of elements of ", printed(),
         "; the products of the sizes "
         "must agree.");
  }
  [[noreturn]] void fail_cut(std::int64_t row) const {
    fail(ErrorKind::kValue, args_.op.name, "one example of shape ", args_.shape_of(0), " has ",
         example_elements().value(traced_counts(args_.symbols)[0]),
         " elements, which cannot be cut into rows of ", row, " for ", printed(),
         "; keep examples together.");
  }

  const InferArgs& args_;
  const ValueType& x_;
  const Ints& wanted_;
  std::vector<Size> sizes_;
};

Inferred reshape_rule(const InferArgs& args) {
  return ReshapeRule(args).infer();
}

Size elements_of(const InferArgs& args, const ValueType& type) {
  Size product = 1;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    product = product * size_along(args, type, axis);
  }
  return product;
}

// True if examples of x are examples of y, with the same number of elements before them.
bool same_examples(const InferArgs& args, const ValueType& x, const ValueType& y) {
  if (x.batched() != y.batched()) return false;
  if (!x.batched()) return true;
  const auto before = [&](const ValueType& type) {
    Size product = 1;
    for (int axis = 0; axis < type.batch.axis; ++axis) {
      product = product * size_along(args, type, axis);
    }
    return product;
  };
  return x.batch.symbol == y.batch.symbol && before(x) == before(y);
}

Inferred reshape_like_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  ValueType y = args.in[1];
  y.dtype = x.dtype;
  SG_CHECK_VALUE(same_size(args, elements_of(args, x), elements_of(args, y)), args.op.name,
                 "shapes must have equally many elements: got ", args.shape_of(0), " and ",
                 args.shape_of(1), ".");
  return same_examples(args, x, y) ? one_result(args, y) : Inferred{{y}, Locality::kFullBatch};
}

Inferred expand_dims_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  const Ints& axes = args.attrs.as<ExpandDimsAttrs>().axes;
  const int rank = x.shape.rank() + int(axes.size());
  std::uint64_t added = 0;
  for (std::int64_t axis : axes) added |= 1ull << normalize_axis(axis, rank, args.op.name);
  ValueType y{x.dtype, {}, x.batch};
  for (int axis = 0, from = 0; axis < rank; ++axis) {
    if (added >> axis & 1u || from == x.shape.rank()) {
      y.shape.push_back(1);
      continue;
    }
    if (x.batch.axis == from) y.batch.axis = axis;
    y.shape.push_back(x.shape[from++]);
  }
  return one_result(args, y);
}

Inferred squeeze_rule(const InferArgs& args) {
  ValueType x = args.in[0];
  const Ints& axes = args.attrs.as<SqueezeAttrs>().axes;
  const int rank = x.shape.rank();
  std::uint64_t removed = 0;
  for (std::int64_t given : axes) {
    const int axis = normalize_axis(given, rank, args.op.name);
    SG_CHECK_VALUE(same_size(args, size_along(args, x, axis), 1), args.op.name,
                   "only axes of size 1 can be left "
                   "out: got axis ",
                   given, " of shape ", args.shape_of(0), ".");
    if (x.batch.axis == axis) x = ordinary_type(args, x);
    removed |= 1ull << axis;
  }
  ValueType y{x.dtype, {}, x.batch};
  for (int axis = 0; axis < rank; ++axis) {
    const bool one =
        axes.empty() && (x.shape[axis] == 1 || (follows_lengths(args.symbols, x.shape[axis]) &&
                                                same_size(args, size_along(args, x, axis), 1)));
    if (removed >> axis & 1u || one) continue;
    if (x.batch.axis == axis) y.batch.axis = y.shape.rank();
    y.shape.push_back(x.shape[axis]);
  }
  return x.batch == args.in[0].batch ? one_result(args, y) : Inferred{{y}, Locality::kFullBatch};
}

OpDef renaming_op(const char* name, const char* doc) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.traits = kAliases;
  op.kernel = copy_bytes;
  op.vjp = reshape_back;
  return op;
}

OpDef reshape_op() {
  OpDef op = renaming_op("reshape", "The elements in another shape; examples stay together.");
  op.attrs = schema_of<ReshapeAttrs>();
  op.infer = reshape_rule;
  const auto shape = [](Ints sizes) { return ReshapeAttrs{.shape = std::move(sizes)}; };
  op.samples = {{.shapes = {{2, 6}}, .attrs = shape({3, -1})},
                {.shapes = {{2, 6}}, .attrs = shape({-2, 2, -1})},
                {.shapes = {{5, 2, 3}}, .attrs = shape({-1, 6}), .batched = {1}},
                {.shapes = {{5, 2, 3}}, .attrs = shape({-1, 3}), .batched = {1}},
                {.shapes = {{5, 2, 3}}, .attrs = shape({-2, -1}), .batched = {1}},
                {.shapes = {{5, 2, 3}}, .attrs = shape({1, -1, 2}), .batched = {1}}};
  return op;
}

OpDef reshape_like_op() {
  OpDef op = renaming_op("reshape_like", "The elements in the shape of another value.");
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "like"};
  op.infer = reshape_like_rule;
  op.vjp = [](const VjpArgs& v) -> Values { return {reshape_back(v)[0], kNoValue}; };
  op.type_only = 1u << 1;
  op.samples = {{.shapes = {{2, 6}, {3, 4}}, .attrs = {}},
                {.shapes = {{5, 2, 3}, {5, 6}}, .attrs = {}, .batched = {1, 1}}};
  return op;
}

OpDef expand_dims_op() {
  OpDef op = renaming_op("expand_dims", "Axes of size 1 added.");
  op.attrs = schema_of<ExpandDimsAttrs>();
  op.infer = expand_dims_rule;
  op.samples = {{.shapes = {{2, 3}}, .attrs = ExpandDimsAttrs{.axes = {0, -1}}},
                {.shapes = {{5, 3}}, .attrs = ExpandDimsAttrs{.axes = {1}}, .batched = {1}},
                {.shapes = {{5, 3}}, .attrs = ExpandDimsAttrs{.axes = {0}}, .batched = {1}}};
  return op;
}

OpDef squeeze_op() {
  OpDef op = renaming_op("squeeze", "Axes of size 1 left out.");
  op.attrs = schema_of<SqueezeAttrs>();
  op.infer = squeeze_rule;
  op.samples = {{.shapes = {{1, 3, 1}}, .attrs = SqueezeAttrs{.axes = {}}},
                {.shapes = {{5, 1, 3}}, .attrs = SqueezeAttrs{.axes = {-2}}, .batched = {1}}};
  return op;
}

}  // namespace

Values reshape_back(const VjpArgs& v) {
  return cotangents(call("reshape_like", Expr(v.b, v.ct[0]), Expr(v.b, v.in[0])));
}

std::vector<OpDef> reshape_ops() {
  return {reshape_op(), reshape_like_op(), expand_dims_op(), squeeze_op()};
}

}  // namespace samegrad
