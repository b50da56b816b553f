// Values that are made of nothing but a number and a shape.
#include <algorithm>
#include <cstring>

#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

using Ints = std::vector<std::int64_t>;

template <class T>
void fill(const View& y, Number value) {
  std::fill_n(y.as<T>(), y.size(), value.as<T>());
}

void full_like_kernel(const KernelArgs& args) {
  fill_value(args.out[0], args.attrs.number("value"));
}

Inferred full_rule(const InferArgs& args) {
  const Ints& shape = args.attrs.integers("shape");
  check_value(std::ranges::all_of(shape, [](std::int64_t dim) { return dim >= 0; }), args.op.name,
              "sizes must be 0 or more: got ", to_string(AttrValue(shape)), ".");
  return {{{args.attrs.dtype("dtype"), Shape(shape), {}}}, Locality::kWhole};
}

void zeros_kernel(const KernelArgs& args) {
  const View& y = args.out[0];
  const std::size_t bytes = std::size_t(y.size()) * size_of(y.dtype);
  if (bytes) std::memset(y.data, 0, bytes);
}

OpDef full_like_row() {
  OpDef op;
  op.name = "full_like";
  op.doc = "One number in the shape and dtype of another value.";
  op.operands = {"x"};
  op.attrs = {{"value", AttrKind::kNumber, "The number."}};
  op.traits = kNoGradient | kSpread;
  op.infer = same_as_input;
  op.kernel = full_like_kernel;
  op.type_only = 1;
  op.samples = {{.shapes = {{2, 3}}, .attrs = {{"value", 1.5}}},
                {.shapes = {{5, 3}}, .attrs = {{"value", -2.0}}, .batched = {1}}};
  return op;
}

// One size of -2 stands for the examples, and gets `rows` of them for each.
Inferred full_rows_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  const Ints& shape = args.attrs.integers("shape");
  const std::int64_t rows = args.attrs.integer("rows");
  const auto axis = std::ranges::find(shape, -2) - shape.begin();
  const bool one = std::ranges::count_if(shape, [](std::int64_t dim) { return dim < 0; }) == 1;
  check_value(x.batched(), args.op.name, "x must have examples: got ", to_string(x), ".");
  check_value(
      one && std::size_t(axis) < shape.size() && rows > 0, args.op.name,
      "shape must have one size of -2, the others being 0 or more, and rows be above 0: got ",
      to_string(AttrValue(shape)), " and ", rows, ".");
  ValueType y{args.attrs.dtype("dtype"), Shape(shape), x.batch};
  y.shape[int(axis)] = kRows;
  y.batch.axis = int(axis);
  y.batch.rows_per_example = rows;
  return one_result(args, y);
}

OpDef full_rows_row() {
  OpDef op;
  op.name = "full_rows";
  op.doc = "One number in a shape with as many examples as another value.";
  op.operands = {"x"};
  op.attrs = {{"shape", AttrKind::kIntegers, "Sizes of the result. -2: the examples."},
              {"rows", AttrKind::kInteger, "Rows for each example.", {std::int64_t(1)}},
              {"value", AttrKind::kNumber, "The number.", {0.0}},
              {"dtype", AttrKind::kDType, "Dtype of the result.", {DType::kFloat32}}};
  op.traits = kNoGradient;
  op.infer = full_rows_rule;
  op.kernel = full_like_kernel;
  op.type_only = 1;
  op.samples = {
      {.shapes = {{5, 3}},
       .attrs = {{"shape", Ints{-2, 2}}, {"rows", std::int64_t(3)}},
       .batched = {1}},
      {.shapes = {{5}}, .attrs = {{"shape", Ints{2, -2}}, {"value", 1.5}}, .batched = {1}}};
  return op;
}

OpDef zeros_row() {
  OpDef op;
  op.name = "zeros";
  op.doc = "Zeros of a shape.";
  op.min_arity = op.max_arity = 0;
  op.attrs = {{"shape", AttrKind::kIntegers, "Sizes of the axes."},
              {"dtype", AttrKind::kDType, "Dtype of the zeros.", {DType::kFloat32}}};
  op.traits = kNoGradient;
  op.infer = full_rule;
  op.kernel = zeros_kernel;
  op.samples = {{.shapes = {}, .attrs = {{"shape", Ints{2, 3}}}}};
  return op;
}

}  // namespace

void fill_value(const View& y, Number value) {
  switch (y.dtype) {
    case DType::kFloat32:
      return fill<float>(y, value);
    case DType::kFloat64:
      return fill<double>(y, value);
    case DType::kInt32:
      return fill<std::int32_t>(y, value);
    case DType::kInt64:
      return fill<std::int64_t>(y, value);
    case DType::kUInt8:
      return fill<std::uint8_t>(y, value);
    case DType::kBool:
      return fill<bool>(y, value);
  }
}

std::vector<OpDef> fill_ops() {
  return {full_like_row(), full_rows_row(), zeros_row()};
}

}  // namespace samegrad
