// Other shapes for the same bytes.
#include <algorithm>
#include <cstring>
#include <optional>

#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kInferred = -1;
// The axis of examples, where -1 is wanted for another axis.
constexpr std::int64_t kExamples = -2;

class ReshapeRule {
 public:
  explicit ReshapeRule(const InferArgs& args)
      : args_(args), x_(args.in[0]), wanted_(args.attrs.integers("shape")) {
    for (std::int64_t dim : wanted_) {
      check_value(dim >= kExamples, args.op.name,
                  "sizes must be 0 or more, -1 (to be inferred) or "
                  "-2 (the examples): got ",
                  to_string(AttrValue(wanted_)), ".");
    }
  }

  Inferred infer() {
    if (x_.batched()) {
      const int axis = axis_of_examples();
      if (axis >= 0) return one_result(args_, with_examples(axis));
      x_ = fixed_type(args_, x_);
    }
    return {{without_examples()}, Locality::kWhole};
  }

 private:
  // Where the examples go: the first axis with as many elements before it as x has before its
  // examples, and with a size that follows them. -1: the result does not keep them together.
  int axis_of_examples() const {
    const std::int64_t before = x_.shape.size(0, x_.batch.axis);
    std::int64_t product = 1;
    for (int axis = 0; axis < int(wanted_.size()); ++axis) {
      const std::int64_t dim = wanted_[std::size_t(axis)];
      if (product == before && (dim < 0 || rows_for(axis))) return axis;
      if (dim < 0) return -1;
      product *= dim;
    }
    return -1;
  }

  std::int64_t traced_count() const {
    return args_.symbols[std::size_t(x_.batch.symbol)].traced_count;
  }

  // Elements of one example for each position before its axis.
  std::int64_t example_elements() const {
    return x_.batch.rows_per_example * x_.shape.size(x_.batch.axis + 1, x_.shape.rank());
  }

  // Known sizes after the axis; absent if one of them is to be inferred.
  std::optional<std::int64_t> product_after(int axis) const {
    std::int64_t product = 1;
    for (std::size_t i = std::size_t(axis) + 1; i < wanted_.size(); ++i) {
      if (wanted_[i] < 0) return std::nullopt;
      product *= wanted_[i];
    }
    return product;
  }

  // Rows per example if the size given for the axis is a multiple of the traced count.
  std::optional<std::int64_t> rows_for(int axis) const {
    const std::int64_t dim = wanted_[std::size_t(axis)], count = traced_count();
    const std::optional<std::int64_t> rest = product_after(axis);
    if (count == 0 ? dim != 0 : dim % count != 0) return std::nullopt;
    if (!rest) return count == 0 ? x_.batch.rows_per_example : dim / count;
    if (*rest == 0 || example_elements() % *rest != 0) return std::nullopt;
    const std::int64_t rows = example_elements() / *rest;
    return rows * count == dim ? std::optional(rows) : std::nullopt;
  }

  ValueType with_examples(int axis) {
    const std::int64_t given = wanted_[std::size_t(axis)];
    const std::optional<std::int64_t> rest = product_after(axis);
    std::int64_t rows = x_.batch.rows_per_example;
    if (given >= 0) {
      rows = *rows_for(axis);
      args_.symbols[std::size_t(x_.batch.symbol)].fixed = true;
    } else if (rest) {
      if (*rest == 0 || example_elements() % *rest != 0) fail_cut(*rest);
      rows = example_elements() / *rest;
    } else if (given == kInferred) {
      fail_two();
    }
    ValueType y{x_.dtype, {}, x_.batch};
    y.batch.axis = axis;
    y.batch.rows_per_example = rows;
    for (int i = 0; i < int(wanted_.size()); ++i) {
      y.shape.push_back(i == axis ? kRows : wanted_[std::size_t(i)]);
    }
    infer_missing(y.shape, axis, rows, x_.shape.size(0, x_.batch.axis) * example_elements());
    return y;
  }

  ValueType without_examples() const {
    ValueType y{x_.dtype, Shape(wanted_), {}};
    const bool other = std::ranges::find(wanted_, kInferred) != wanted_.end();
    for (int i = 0; i < y.shape.rank(); ++i) {
      if (y.shape[i] != kExamples) continue;
      const bool keeps = other && i < x_.shape.rank();
      y.shape[i] = keeps ? x_.shape[i] : kInferred;
    }
    infer_missing(y.shape, -1, 1, x_.shape.size());
    return y;
  }

  // Replaces the one kInferred beside the examples so that the elements are as many as given.
  void infer_missing(Shape& shape, int examples, std::int64_t rows, std::int64_t elements) const {
    int missing = -1;
    std::int64_t known = rows;
    for (int i = 0; i < shape.rank(); ++i) {
      if (i == examples) continue;
      if (shape[i] >= 0) {
        known *= shape[i];
      } else if (missing >= 0 || shape[i] == kExamples) {
        fail_two();
      } else {
        missing = i;
      }
    }
    if (missing >= 0) {
      if (known == 0 || elements % known != 0) fail_size();
      shape[missing] = elements / known;
    } else if (known != elements) {
      fail_size();
    }
  }

  [[noreturn]] void fail_two() const {
    fail(ErrorKind::kValue, args_.op.name, "only one size can be inferred: got ",
         to_string(AttrValue(wanted_)), "; give the others (-2 stands for the examples).");
  }
  [[noreturn]] void fail_size() const {
    fail(ErrorKind::kValue, args_.op.name, "shape ", args_.shape_of(0), " does not have the ",
         "number of elements of ", to_string(AttrValue(wanted_)),
         "; the products of the sizes "
         "must agree.");
  }
  [[noreturn]] void fail_cut(std::int64_t row) const {
    fail(ErrorKind::kValue, args_.op.name, "one example of shape ", args_.shape_of(0), " has ",
         example_elements(), " elements, which cannot be cut into rows of ", row, " for ",
         to_string(AttrValue(wanted_)), "; keep examples together.");
  }

  const InferArgs& args_;
  ValueType x_;
  const Ints& wanted_;
};

Inferred reshape_rule(const InferArgs& args) {
  return ReshapeRule(args).infer();
}

std::int64_t traced_elements(const InferArgs& args, const ValueType& type) {
  std::int64_t product = 1;
  for (int axis = 0; axis < type.shape.rank(); ++axis) product *= traced_size(args, type, axis);
  return product;
}

Inferred reshape_like_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  ValueType y = args.in[1];
  y.dtype = x.dtype;
  check_value(traced_elements(args, x) == traced_elements(args, y), args.op.name,
              "shapes must have equally many elements: got ", args.shape_of(0), " and ",
              args.shape_of(1), ".");
  const bool same =
      x.batched() == y.batched() &&
      (!x.batched() || (x.batch.symbol == y.batch.symbol && example_size(x) == example_size(y)));
  if (same) return one_result(args, y);
  if (x.batched()) fixed_type(args, x);
  if (y.batched()) fixed_type(args, y);
  return {{y}, Locality::kWhole};
}

Inferred expand_dims_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  const Ints& axes = args.attrs.integers("axes");
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
  const Ints& axes = args.attrs.integers("axes");
  const int rank = x.shape.rank();
  std::uint64_t removed = 0;
  for (std::int64_t given : axes) {
    const int axis = normalize_axis(given, rank, args.op.name);
    check_value(traced_size(args, x, axis) == 1, args.op.name,
                "only axes of size 1 can be left "
                "out: got axis ",
                given, " of shape ", args.shape_of(0), ".");
    if (x.batch.axis == axis) x = fixed_type(args, x);
    removed |= 1ull << axis;
  }
  ValueType y{x.dtype, {}, x.batch};
  for (int axis = 0; axis < rank; ++axis) {
    if (removed >> axis & 1u || (axes.empty() && x.shape[axis] == 1)) continue;
    if (x.batch.axis == axis) y.batch.axis = y.shape.rank();
    y.shape.push_back(x.shape[axis]);
  }
  return x.batch == args.in[0].batch ? one_result(args, y) : Inferred{{y}, Locality::kWhole};
}

OpDef renaming_row(const char* name, const char* doc) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.scaling = Scaling::kSum;
  op.traits = kAliases;
  op.kernel = copy_bytes;
  op.vjp = reshape_back;
  return op;
}

OpDef reshape_row() {
  OpDef op = renaming_row("reshape", "The elements in another shape; examples stay together.");
  op.attrs = {{"shape", AttrKind::kIntegers,
               "Sizes of the result. -1: follows from the others; -2: the examples."}};
  op.infer = reshape_rule;
  const auto shape = [](Ints sizes) { return Attrs{{"shape", std::move(sizes)}}; };
  op.samples = {{.shapes = {{2, 6}}, .attrs = shape({3, -1})},
                {.shapes = {{2, 6}}, .attrs = shape({-2, 2, -1})},
                {.shapes = {{5, 2, 3}}, .attrs = shape({-1, 6}), .batched = {1}},
                {.shapes = {{5, 2, 3}}, .attrs = shape({-1, 3}), .batched = {1}},
                {.shapes = {{5, 2, 3}}, .attrs = shape({-2, -1}), .batched = {1}},
                {.shapes = {{5, 2, 3}}, .attrs = shape({1, -1, 2}), .batched = {1}}};
  return op;
}

OpDef reshape_like_row() {
  OpDef op = renaming_row("reshape_like", "The elements in the shape of another value.");
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "like"};
  op.infer = reshape_like_rule;
  op.vjp = [](const VjpArgs& v) -> Values { return {reshape_back(v)[0], kNoValue}; };
  op.type_only = 1u << 1;
  op.samples = {{.shapes = {{2, 6}, {3, 4}}, .attrs = {}},
                {.shapes = {{5, 2, 3}, {5, 6}}, .attrs = {}, .batched = {1, 1}}};
  return op;
}

OpDef expand_dims_row() {
  OpDef op = renaming_row("expand_dims", "Axes of size 1 added.");
  op.attrs = {{"axes", AttrKind::kIntegers, "Where they are in the result."}};
  op.infer = expand_dims_rule;
  op.samples = {{.shapes = {{2, 3}}, .attrs = {{"axes", Ints{0, -1}}}},
                {.shapes = {{5, 3}}, .attrs = {{"axes", Ints{1}}}, .batched = {1}},
                {.shapes = {{5, 3}}, .attrs = {{"axes", Ints{0}}}, .batched = {1}}};
  return op;
}

OpDef squeeze_row() {
  OpDef op = renaming_row("squeeze", "Axes of size 1 left out.");
  op.attrs = {{"axes",
               AttrKind::kIntegers,
               "Which; empty: all of size 1 but that of the examples.",
               {Ints{}}}};
  op.infer = squeeze_rule;
  op.samples = {{.shapes = {{1, 3, 1}}, .attrs = {{"axes", Ints{}}}},
                {.shapes = {{5, 1, 3}}, .attrs = {{"axes", Ints{-2}}}, .batched = {1}}};
  return op;
}

}  // namespace

void copy_bytes(const KernelArgs& args) {
  const View& y = args.out[0];
  const std::size_t bytes = std::size_t(y.size()) * size_of(y.dtype);
  if (bytes && y.data != args.in[0].data) std::memcpy(y.data, args.in[0].data, bytes);
}

Values reshape_back(const VjpArgs& v) {
  return cotangents(call("reshape_like", Expr(v.b, v.ct[0]), Expr(v.b, v.in[0])));
}

std::vector<OpDef> reshape_ops() {
  return {reshape_row(), reshape_like_row(), expand_dims_row(), squeeze_row()};
}

}  // namespace samegrad
