// Positions in sorted order. Values in that order are taken by take_along_axis, which has the
// derivative.
#include "ops/sort.h"

#include <bit>
#include <limits>

#include "ops/partition.h"
#include "ops/rules.h"
#include "ops/sort_kernel.h"

namespace samegrad {
namespace {

constexpr std::int64_t kMaxPlaces = std::numeric_limits<std::int32_t>::max();

void check_places(const InferArgs& args, std::int64_t size) {
  SG_CHECK_VALUE(is_symbolic(size) || size <= kMaxPlaces, args.op.name,
                 "positions are int32, so an axis has at most ", kMaxPlaces,
                 " elements: got shape ", args.shape_of(0), "; split it.");
}

// Along the examples, those of the replica are ordered.
Inferred arg_sort_rule(const InferArgs& args) {
  check_dtype(args, 0, kAll);
  check_min_rank(args, 0, 1);
  ValueType y = args.in[0];
  const int axis = normalize_axis(args.attrs.as<SortAttrs>().axis, y.shape.rank(), args.op.name);
  check_places(args, y.shape[axis]);
  y.dtype = DType::kInt32;
  return y.batch.axis == axis ? Inferred{{y}, Locality::kFullBatch} : one_result(args, y);
}

// A comparison and what it moves.
constexpr double kComparison = 4;

double levels_of(std::int64_t n) {
  return double(std::bit_width(std::uint64_t(n) + 1));
}

OpDef arg_sort_op() {
  OpDef op;
  op.name = "arg_sort";
  op.doc =
      "Positions (int32) of the elements along an axis in order, the first of equals first, NaN "
      "last.";
  op.operands = {"x"};
  op.attrs = schema_of<SortAttrs>();
  op.traits = kNoGradient | kAnyType;
  op.infer = arg_sort_rule;
  set_parts<lines_to_sort, run_arg_sort>(op);
  op.flops = [](const CostArgs& args) {
    const Shape& shape = args.in[0].shape;
    std::int64_t axis = args.attrs.as<SortAttrs>().axis;
    axis += axis < 0 ? shape.rank() : 0;
    return kComparison * double(shape.size()) * levels_of(shape[int(axis)]);
  };
  op.samples = {{.shapes = {{7}}, .attrs = SortAttrs{.axis = 0}},
                {.shapes = {{5, 7}}, .attrs = SortAttrs{.descending = true}, .batched = {1}},
                {.shapes = {{5, 4, 3}}, .attrs = SortAttrs{.axis = 1}, .batched = {1}},
                {.shapes = {{5, 3}}, .attrs = SortAttrs{.axis = 0}, .batched = {1}}};
  return op;
}

Inferred top_k_rule(const InferArgs& args) {
  check_dtype(args, 0, kAll);
  check_min_rank(args, 0, 1);
  const ValueType& x = args.in[0];
  const int last = x.shape.rank() - 1;
  const std::int64_t k = args.attrs.as<TopKAttrs>().k;
  const bool fits = k >= 0 && decide(args.symbols, size_along(args, x, last) - k,
                                     [](std::int64_t rest) { return rest >= 0; });
  SG_CHECK_VALUE(fits, args.op.name, "k must lie between 0 and the size of the last axis: got ", k,
                 " for shape ", args.shape_of(0), "; ask for fewer.");
  check_places(args, x.shape[last]);
  ValueType y = x;
  y.dtype = DType::kInt32;
  y.shape[last] = k;
  if (x.batch.axis == last) y.batch = {};
  return one_result(args, y);
}

OpDef top_k_op() {
  OpDef op;
  op.name = "top_k";
  op.doc =
      "Positions (int32) of the k largest elements along the last axis, the largest first, the "
      "first of equals first, NaN last.";
  op.operands = {"x"};
  op.attrs = schema_of<TopKAttrs>();
  op.traits = kNoGradient | kAnyType;
  op.infer = top_k_rule;
  set_parts<lines_of_top_k, run_top_k>(op);
  op.samples = {{.shapes = {{7}}, .attrs = TopKAttrs{.k = 3}},
                {.shapes = {{5, 40}}, .attrs = TopKAttrs{.k = 2}, .batched = {1}},
                {.shapes = {{5, 4}}, .attrs = TopKAttrs{.k = 4}, .batched = {1}}};
  return op;
}

// One line of numbers for all values, or one for each line of values.
Inferred search_sorted_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  check_same_dtype(args, 0, 2);
  check_min_rank(args, 0, 1);
  const ValueType &s = args.in[0], &v = args.in[1];
  const int last = s.shape.rank() - 1;
  bool ok = last == 0 || v.shape.rank() == last + 1;
  for (int i = 0; ok && i < last; ++i) {
    ok = same_size(args, size_along(args, s, i), size_along(args, v, i));
  }
  SG_CHECK_VALUE(ok, args.op.name,
                 "'values' must have the leading axes of 'sequence', which has a line for each, or "
                 "'sequence' must have one axis: got ",
                 shapes_of_operands(args), ".");
  check_places(args, s.shape[last]);
  ValueType y = v;
  y.dtype = DType::kInt32;
  const bool shared = !s.batched() && (last == 0 || v.batch.axis == last);
  const bool lines = shared || (s.batch == v.batch && s.batch.axis < last);
  return lines ? one_result(args, y) : Inferred{{y}, Locality::kFullBatch};
}

OpDef search_sorted_op() {
  OpDef op;
  op.name = "search_sorted";
  op.doc =
      "Where (int32) each value would be put into the last axis of a sorted sequence: before the "
      "elements that equal it, or behind them.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"sequence", "values"};
  op.attrs = schema_of<SearchAttrs>();
  op.traits = kNoGradient;
  op.infer = search_sorted_rule;
  set_parts<elements_of_result, run_search_sorted>(op);
  op.flops = [](const CostArgs& args) {
    const Shape& sequence = args.in[0].shape;
    return kComparison * double(args.in[1].size()) * levels_of(sequence[sequence.rank() - 1]);
  };
  op.samples = {{.shapes = {{7}, {2, 3}}, .attrs = SearchAttrs{}},
                {.shapes = {{7}, {5, 3}}, .attrs = SearchAttrs{.right = true}, .batched = {0, 1}},
                {.shapes = {{5, 4}, {5, 6}}, .attrs = SearchAttrs{}, .batched = {1, 1}}};
  return op;
}

}  // namespace

std::vector<OpDef> sort_ops() {
  return {arg_sort_op(), top_k_op(), search_sorted_op()};
}

}  // namespace samegrad
