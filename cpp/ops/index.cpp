// Choosing elements by index, and the sums that are the gradients of it.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/index_kernel.h"
#include "ops/indexed_samples.h"
#include "ops/partition.h"
#include "ops/rules.h"
#include "ops/tree_reduction.h"

namespace samegrad {
namespace {

int axis_of(const InferArgs& args, const ValueType& x) {
  return normalize_axis(args.attrs.as<IndexAttrs>().axis, x.shape.rank(), args.op.name);
}

// ---- gather ----

// The result of gathering indices from params.
Inferred gathered(const InferArgs& args, const ValueType& params, ValueType indices) {
  const int axis = axis_of(args, params);
  const bool own_examples = params.batched() && params.batch.axis != axis;
  bool whole = params.batch.axis == axis;
  if (own_examples && indices.batched()) {
    // Indices of examples into values of examples: all pairs.
    indices = ordinary_type(args, indices);
    whole = true;
  }
  ValueType y{params.dtype, {}, {}};
  const auto append = [&y](const ValueType& from, int from_axis) {
    if (from.batch.axis == from_axis) {
      y.batch = from.batch;
      y.batch.axis = y.shape.rank();
    }
    y.shape.push_back(from.shape[from_axis]);
  };
  for (int i = 0; i < axis; ++i) append(params, i);
  for (int i = 0; i < indices.shape.rank(); ++i) append(indices, i);
  for (int i = axis + 1; i < params.shape.rank(); ++i) append(params, i);
  return whole ? Inferred{{y}, Locality::kFullBatch} : one_result(args, y);
}

Inferred gather_rule(const InferArgs& args) {
  check_dtype(args, 1, kIndices);
  check_min_rank(args, 0, 1);
  return gathered(args, args.in[0], args.in[1]);
}

Values gather_vjp(const VjpArgs& v) {
  const Expr ct(v.b, v.ct[0]), params(v.b, v.in[0]), indices(v.b, v.in[1]);
  return cotangents(call("segment_sum", ct, indices, params, v.attrs), none());
}

Attrs axis(std::int64_t value) {
  return IndexAttrs{.axis = value};
}

OpDef gather_op() {
  OpDef op;
  op.name = "gather";
  op.doc = "The elements of params at indices along an axis, which the axes of indices replace.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"params", "indices"};
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.attrs = schema_of<IndexAttrs>();
  op.infer = gather_rule;
  op.traits = kMayRaise | kAnyType;
  set_parts<rows_of_gather, run_gather>(op);
  op.vjp = gather_vjp;
  op.samples = {indexed_sample({{3, 2}, {4}}, axis(0), kIndexed),
                indexed_sample({{2, 4, 3}, {2, 2}}, axis(1), kIndexed),
                indexed_sample({{4, 2}, {9}}, axis(0), kIndexed, {0, 1}),
                indexed_sample({{4, 2}, {5, 3}}, axis(0), kIndexed, {0, 1}),
                indexed_sample({{5, 3, 2}, {4}}, axis(1), kIndexed, {1, 0})};
  return op;
}

Inferred segment_sum_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  check_dtype(args, 1, kIndices);
  check_min_rank(args, 2, 1);
  ValueType like = args.in[2];
  const Inferred values = gathered(args, like, args.in[1]);
  SG_CHECK_VALUE(same_shape(args, args.in[0], values.types[0]), args.op.name,
                 "'values' must have the shape that gather makes of 'like' and 'indices': got ",
                 shapes_of_operands(args), ".");
  like.dtype = args.in[0].dtype;
  const int axis = axis_of(args, like);
  ExampleAxis summed = args.in[1].batch;
  if (summed.exists()) summed.axis += axis;
  const bool tree = !like.batched() && summed.exists() && args.in[0].batch == summed;
  if (tree) return {{like}, Locality::kBatchReduction};
  const bool by_example = is_per_example(values.locality) && like.batched() &&
                          args.in[0].batch == values.types[0].batch;
  return by_example ? one_result(args, like) : Inferred{{like}, Locality::kFullBatch};
}

OpDef segment_sum_op() {
  OpDef op;
  op.name = "segment_sum";
  op.doc =
      "Zeros in the shape of another value, to which values are added at indices along an axis: "
      "over examples the fixed tree, inside a leaf in order.";
  op.min_arity = op.max_arity = 3;
  op.operands = {"values", "indices", "like"};
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.attrs = schema_of<IndexAttrs>();
  op.traits = kScatters | kMayRaise;
  op.infer = segment_sum_rule;
  op.kernel = segment_sum_kernel;
  op.tree = {.state = segment_state,
             .open = open_segments,
             .leaf = segment_leaf,
             .combine = combine_elements<BinaryFn::k_add>,
             .neutral = neutral_zeros,
             .subtree = segment_subtree};
  op.rows = segment_rows();
  op.vjp = [](const VjpArgs& v) {
    return cotangents(call("gather", Expr(v.b, v.ct[0]), Expr(v.b, v.in[1]), v.attrs), none(),
                      none());
  };
  op.type_only = 1u << 2;
  op.samples = {indexed_sample({{4, 2}, {4}, {3, 2}}, axis(0), kSegments),
                indexed_sample({{2, 2, 2, 3}, {2, 2}, {2, 4, 3}}, axis(1), kSegments),
                indexed_sample({{9, 2}, {9}, {4, 2}}, axis(0), kSegments, {1, 1, 0}),
                indexed_sample({{9, 3, 2}, {9, 3}, {4, 2}}, axis(0), kSegments, {1, 1, 0}),
                indexed_sample({{5, 4, 2}, {4}, {5, 3, 2}}, axis(1), kSegments, {1, 0, 1})};
  return op;
}

// ---- nonzero_rows ----

// With examples on another axis, a row along axis 0 has elements of all examples.
Inferred nonzero_rows_rule(const InferArgs& args) {
  ValueType y = args.in[0];
  y.dtype = DType::kBool;
  return y.batch.axis > 0 ? Inferred{{y}, Locality::kFullBatch} : one_result(args, y);
}

OpDef nonzero_rows_op() {
  OpDef op;
  op.name = "nonzero_rows";
  op.doc = "True in all elements of a row (along axis 0) in which an element is not 0.";
  op.operands = {"x"};
  op.traits = kNoGradient | kBatchwise;
  op.infer = nonzero_rows_rule;
  op.kernel = nonzero_rows_kernel;
  op.samples = {{.shapes = {{4, 3}}, .attrs = {}},
                {.shapes = {{5, 2}},
                 .attrs = {},
                 .dtypes = {DType::kInt32},
                 .batched = {1},
                 .integer_high = 2},
                {.shapes = {{2, 5}}, .attrs = {}},
                {.shapes = {{}}, .attrs = {}}};
  return op;
}

// ---- one_hot ----

Inferred one_hot_rule(const InferArgs& args) {
  check_dtype(args, 0, kIntegers);
  const std::int64_t depth = args.attrs.as<OneHotAttrs>().depth;
  SG_CHECK_VALUE(depth >= 0 || is_symbolic(depth), args.op.name, "depth must be 0 or more: got ",
                 depth, ".");
  ValueType y = args.in[0];
  y.dtype = args.attrs.as<OneHotAttrs>().dtype;
  y.shape.push_back(depth);
  return one_result(args, y);
}

OpDef one_hot_op() {
  OpDef op;
  op.name = "one_hot";
  op.doc =
      "Along a new last axis of `depth` elements: `on` at the index, `off` elsewhere. An index "
      "outside [0, depth) gives `off` everywhere, as in TensorFlow.";
  op.operands = {"indices"};
  op.attrs = schema_of<OneHotAttrs>();
  op.traits = kNoGradient | kAnyType;
  op.block = {BlockFn::kOneHot};
  op.infer = one_hot_rule;
  set_parts<rows_of_one_hot, run_one_hot>(op);
  op.scratch_bytes = no_scratch;
  const Attrs attrs = OneHotAttrs{.depth = 4, .on = 1.0, .off = 0.0};
  op.samples = {{.shapes = {{2, 3}}, .attrs = attrs, .dtypes = {DType::kInt64}, .integer_high = 4},
                {.shapes = {{5}},
                 .attrs = attrs,
                 .dtypes = {DType::kInt32},
                 .batched = {1},
                 .integer_high = 4}};
  return op;
}

// ---- take_along_axis ----

// x and indices must agree on all axes but the indexed one.
void check_along(const InferArgs& args, const ValueType& x, const ValueType& indices, int axis) {
  bool ok = x.shape.rank() == indices.shape.rank();
  for (int i = 0; ok && i < x.shape.rank(); ++i) {
    ok = i == axis || same_size(args, size_along(args, x, i), size_along(args, indices, i));
  }
  SG_CHECK_VALUE(ok, args.op.name, "'indices' must have the shape of the value on all axes but ",
                 axis, ": got ", shapes_of_operands(args), ".");
}

// True if the lines along the axis are parts of single examples.
bool has_own_lines(const InferArgs& args, int axis) {
  return args.in[0].batch.axis != axis && has_aligned_examples(args, args.in[0].shape.rank());
}

Inferred take_along_rule(const InferArgs& args) {
  check_dtype(args, 1, kIndices);
  check_min_rank(args, 0, 1);
  const int axis = axis_of(args, args.in[0]);
  check_along(args, args.in[0], args.in[1], axis);
  ValueType y = args.in[1];
  y.dtype = args.in[0].dtype;
  const bool chosen = !args.in[0].batched() && y.batch.axis == axis;
  const bool by_example = chosen || has_own_lines(args, axis);
  return by_example ? one_result(args, y) : Inferred{{y}, Locality::kFullBatch};
}

Inferred take_along_grad_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  check_dtype(args, 1, kIndices);
  check_min_rank(args, 2, 1);
  ValueType x = args.in[2];
  const int axis = axis_of(args, x);
  check_along(args, x, args.in[1], axis);
  SG_CHECK_VALUE(same_shape(args, args.in[0], args.in[1]), args.op.name,
                 "'ct' must have the shape of 'indices': got ", shapes_of_operands(args), ".");
  x.dtype = args.in[0].dtype;
  return has_own_lines(args, axis) ? one_result(args, x) : Inferred{{x}, Locality::kFullBatch};
}

OpDef take_along_op() {
  OpDef op;
  op.name = "take_along_axis";
  op.doc = "The elements of x at indices along an axis, each line of x by its own indices.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "indices"};
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.attrs = schema_of<IndexAttrs>();
  op.infer = take_along_rule;
  op.traits = kMayRaise | kAnyType;
  set_parts<elements_of_result, run_take_along>(op);
  op.vjp = [](const VjpArgs& v) {
    const Expr ct(v.b, v.ct[0]), x(v.b, v.in[0]), indices(v.b, v.in[1]);
    return cotangents(call("take_along_axis_grad", ct, indices, x, v.attrs), none());
  };
  op.samples = {indexed_sample({{2, 3}, {2, 2}}, axis(-1), kIndexed),
                indexed_sample({{5, 4, 2}, {5, 3, 2}}, axis(1), kIndexed, {1, 1}, 4)};
  return op;
}

OpDef take_along_grad_op() {
  OpDef op;
  op.name = "take_along_axis_grad";
  op.doc = "Zeros in the shape of another value, to which elements are added along an axis.";
  op.min_arity = op.max_arity = 3;
  op.operands = {"ct", "indices", "like"};
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.attrs = schema_of<IndexAttrs>();
  op.traits = kBackward | kMayRaise;
  op.infer = take_along_grad_rule;
  set_parts<outer_of_take_along, run_take_along_grad>(op);
  op.vjp = [](const VjpArgs& v) {
    const Expr ct(v.b, v.ct[0]), indices(v.b, v.in[1]);
    return cotangents(call("take_along_axis", ct, indices, v.attrs), none(), none());
  };
  op.type_only = 1u << 2;
  op.samples = {
      indexed_sample({{2, 2}, {2, 2}, {2, 3}}, axis(-1), kSegments),
      indexed_sample({{5, 3, 2}, {5, 3, 2}, {5, 4, 2}}, axis(1), kSegments, {1, 1, 1}, 4)};
  return op;
}

}  // namespace

std::vector<OpDef> index_ops() {
  return {gather_op(),  segment_sum_op(), nonzero_rows_op(),
          one_hot_op(), take_along_op(),  take_along_grad_op()};
}

}  // namespace samegrad
