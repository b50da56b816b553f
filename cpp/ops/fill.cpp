// Values that are made of nothing but a number and a shape.
#include <algorithm>
#include <cstring>

#include "ops/attributes.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

void run_full(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  fill_value(elements_of(args.out[0], begin, end), args.attrs.as<FullAttrs>().value);
}

Inferred full_rule(const InferArgs& args) {
  const Ints& shape = args.attrs.as<ZerosAttrs>().shape;
  const auto possible = [&](std::int64_t dim) {
    return dim >= 0 || follows_lengths(args.symbols, dim);
  };
  SG_CHECK_VALUE(std::ranges::all_of(shape, possible), args.op.name,
                 "sizes must be 0 or more: got ", to_string(shape), ".");
  return {{{args.attrs.as<ZerosAttrs>().dtype, Shape(shape), {}}}, Locality::kFullBatch};
}

void run_zeros(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View y = elements_of(args.out[0], begin, end);
  const std::size_t bytes = std::size_t(y.size()) * size_of(y.dtype);
  if (bytes) std::memset(y.data, 0, bytes);
}

OpDef full_like_op() {
  OpDef op;
  op.name = "full_like";
  op.doc = "One number in the shape and dtype of another value.";
  op.operands = {"x"};
  op.attrs = schema_of<FullAttrs>();
  op.traits = kNoGradient | kSplat | kAnyType;
  op.infer = same_as_input;
  set_parts<elements_of_result, run_full>(op);
  op.scratch_bytes = no_scratch;
  op.type_only = 1;
  op.samples = {{.shapes = {{2, 3}}, .attrs = FullAttrs{.value = 1.5}},
                {.shapes = {{5, 3}}, .attrs = FullAttrs{.value = -2.0}, .batched = {1}}};
  return op;
}

// True if the sizes are the same on all replicas, whatever the operands are.
bool has_common_sizes(const InferArgs& args, const ValueType& type) {
  return std::ranges::none_of(
      type.shape, [&](std::int64_t size) { return differs_between_replicas(args.symbols, size); });
}

// The first axis that counts examples of an operand, so many rows for each.
ExampleAxis examples_among(const InferArgs& args, const std::vector<Size>& sizes) {
  for (int axis = 0; axis < int(sizes.size()); ++axis) {
    for (const ValueType& like : args.in) {
      if (!like.batched() || sizes[std::size_t(axis)].number()) continue;
      const auto rows =
          sizes[std::size_t(axis)].over(size_of_symbol(args.symbols, like.batch.symbol));
      const auto number = rows ? rows->number() : std::nullopt;
      if (number && *number > 0) return {axis, *number, like.batch.symbol};
    }
  }
  return {};
}

Inferred full_sizes_rule(const InferArgs& args) {
  ValueType y{args.attrs.as<FullSizesAttrs>().dtype, {}, {}};
  std::vector<Size> sizes;
  for (const std::int64_t dim : args.attrs.as<FullSizesAttrs>().shape) {
    SG_CHECK_VALUE(dim >= 0 || is_symbolic(dim), args.op.name, "sizes must be 0 or more: got ", dim,
                   ".");
    y.shape.push_back(dim);
    sizes.push_back(size_of(args.symbols, dim));
  }
  y.batch = examples_among(args, sizes);
  if (y.batched()) y.shape[y.batch.axis] = kBatchDim;
  Inferred inferred = one_result(args, y);
  if (!y.batched() && has_common_sizes(args, y)) inferred.placements = {Placement::kReplicated};
  return inferred;
}

OpDef full_sizes_op() {
  OpDef op;
  op.name = "full_sizes";
  op.doc = "One number in a shape with sizes that follow from the examples of other values.";
  op.max_arity = 8;
  op.operands = {"likes"};
  op.attrs = schema_of<FullSizesAttrs>();
  op.traits = kNoGradient | kAnyType;
  op.infer = full_sizes_rule;
  set_parts<elements_of_result, run_full>(op);
  op.scratch_bytes = no_scratch;
  op.type_only = ~0u;
  op.samples = {{.shapes = {{5}}, .attrs = FullSizesAttrs{{1.5}, {2, 3}}}};
  return op;
}

Inferred iota_rule(const InferArgs& args) {
  const std::int64_t size = args.attrs.as<SizeAttrs>().size;
  SG_CHECK_VALUE(size >= 0 || is_symbolic(size), args.op.name, "size must be 0 or more: got ", size,
                 ".");
  Inferred inferred{{{DType::kInt64, {size}, {}}}, Locality::kFullBatch};
  if (has_common_sizes(args, inferred.types[0])) inferred.placements = {Placement::kReplicated};
  return inferred;
}

void run_iota(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  auto* y = args.out[0].as<std::int64_t>();
  for (std::int64_t i = begin; i < end; ++i) y[i] = i;
}

OpDef iota_op() {
  OpDef op;
  op.name = "iota";
  op.doc = "The numbers 0, 1, … (int64), as many as follows from the examples of other values.";
  op.max_arity = 8;
  op.operands = {"likes"};
  op.attrs = schema_of<SizeAttrs>();
  op.traits = kNoGradient | kAnyType;
  op.infer = iota_rule;
  set_parts<elements_of_result, run_iota>(op);
  op.scratch_bytes = no_scratch;
  op.type_only = ~0u;
  op.samples = {{.shapes = {{5}}, .attrs = SizeAttrs{.size = 4}}};
  return op;
}

OpDef zeros_op() {
  OpDef op;
  op.name = "zeros";
  op.doc = "Zeros of a shape.";
  op.min_arity = op.max_arity = 0;
  op.attrs = schema_of<ZerosAttrs>();
  op.traits = kNoGradient | kAnyType;
  op.infer = full_rule;
  set_parts<elements_of_result, run_zeros>(op);
  op.scratch_bytes = no_scratch;
  op.samples = {{.shapes = {}, .attrs = ZerosAttrs{.shape = {2, 3}}}};
  return op;
}

}  // namespace

void fill_value(const View& y, Scalar value) {
  visit(y.dtype, [&]<class T>() { std::fill_n(y.as<T>(), y.size(), value.as<T>()); });
}

std::vector<OpDef> fill_ops() {
  return {full_like_op(), full_sizes_op(), iota_op(), zeros_op()};
}

}  // namespace samegrad
