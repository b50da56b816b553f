// Several indices as one, indices into each part of a batch, and what segments of equal indices
// have in common. Sums of segments over examples are segment_sum's (index.cpp).
#include "ops/scatter.h"

#include <algorithm>

#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/indexed_samples.h"
#include "ops/partition.h"
#include "ops/rules.h"
#include "ops/scatter_kernel.h"

namespace samegrad {
namespace {

// ---- ravel_index ----

// Sizes that count examples are those of a whole replica.
Inferred ravel_index_rule(const InferArgs& args) {
  check_dtype(args, 0, kIndices);
  check_min_rank(args, 0, 1);
  const ValueType &indices = args.in[0], &like = args.in[1];
  const std::int64_t first = args.attrs.as<RavelAttrs>().batch_dims;
  const int last = indices.shape.rank() - 1;
  const std::int64_t size = indices.shape[last];
  const bool asked = follows_lengths(args.symbols, size);
  const bool counted = indices.batch.axis == last || (is_symbolic(size) && !asked);
  const std::int64_t depth = counted ? 0 : fixed_size(args, size_along(args, indices, last));
  SG_CHECK_VALUE(!counted && first >= 0 && first + depth <= like.shape.rank(), args.op.name,
                 "the last axis of 'indices' has one index for each of the first axes",
                 first ? " behind the batch's" : "", ", of which 'like' has ",
                 std::max<std::int64_t>(like.shape.rank() - first, 0), ": got ",
                 shapes_of_operands(args), ".");
  ValueType y = indices;
  y.dtype = DType::kInt64;
  y.shape.erase(last);
  const bool whole = like.batched() && (like.batch.axis >= first || like.batch != indices.batch);
  return whole ? Inferred{{y}, Locality::kFullBatch} : one_result(args, y);
}

OpDef ravel_index_op() {
  OpDef op;
  op.name = "ravel_index";
  op.doc =
      "The indices along several axes of another value as one (int64) into these axes joined to "
      "one.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"indices", "like"};
  op.attrs = schema_of<RavelAttrs>();
  op.traits = kNoGradient | kMayRaise;
  op.infer = ravel_index_rule;
  op.kernel = ravel_index_kernel;
  op.type_only = 1u << 1;
  const std::vector<DType> dtypes{DType::kInt64, DType::kFloat32};
  op.samples = {
      indexed_sample({{4, 2}, {3, 4}}, RavelAttrs{}, dtypes),
      indexed_sample({{5, 2, 1}, {4, 3}}, RavelAttrs{}, dtypes, {1, 0}),
      indexed_sample({{5, 2, 2}, {5, 3, 3, 2}}, RavelAttrs{.batch_dims = 1}, dtypes, {1, 1}),
      indexed_sample({{5, 1}, {3}}, RavelAttrs{.absent = true}, dtypes, {1, 0})};
  return op;
}

// ---- batch_gather ----

int batch_dims_of(const InferArgs& args, const ValueType& x, const ValueType& indices) {
  const std::int64_t dims = args.attrs.as<BatchIndexAttrs>().batch_dims;
  bool ok = dims >= 0 && dims < x.shape.rank() && dims <= indices.shape.rank();
  for (int i = 0; ok && i < dims; ++i) {
    ok = same_size(args, size_along(args, x, i), size_along(args, indices, i));
  }
  SG_CHECK_VALUE(ok, args.op.name, "the value and 'indices' must share their first ", dims,
                 " axes, and the value must have one more: got ", shapes_of_operands(args), ".");
  return int(dims);
}

// The type of batch_gather of x and indices.
ValueType batch_gathered(const InferArgs& args, const ValueType& x, const ValueType& indices) {
  const int dims = batch_dims_of(args, x, indices);
  ValueType y = ordinary_type(args, indices);
  y.dtype = x.dtype;
  const ValueType parts = ordinary_type(args, x);
  for (int i = dims + 1; i < x.shape.rank(); ++i) y.shape.push_back(parts.shape[i]);
  y.batch = indices.batch;
  if (!indices.batched() && x.batch.axis != dims) {
    y.batch = x.batch;
    if (x.batch.axis > dims) y.batch.axis += indices.shape.rank() - dims - 1;
  }
  if (y.batched()) y.shape[y.batch.axis] = kBatchDim;
  return y;
}

// Examples are parts of the batch, with indices of their own, or elements that one index chooses
// in all of them.
bool has_examples_apart(const InferArgs& args, const ValueType& x, const ValueType& indices) {
  const auto dims = int(args.attrs.as<BatchIndexAttrs>().batch_dims);
  return has_aligned_examples(args, dims) || (x.batch.axis > dims && !indices.batched());
}

Inferred batch_gather_rule(const InferArgs& args) {
  check_dtype(args, 1, kIndices);
  check_min_rank(args, 0, 1);
  const ValueType &x = args.in[0], &indices = args.in[1];
  const ValueType y = batch_gathered(args, x, indices);
  const auto dims = int(args.attrs.as<BatchIndexAttrs>().batch_dims);
  const bool chosen = !x.batched() && indices.batch.axis >= dims;
  const bool by_example = chosen || has_examples_apart(args, x, indices);
  return by_example ? one_result(args, y) : Inferred{{y}, Locality::kFullBatch};
}

Attrs batch_dims(std::int64_t count) {
  return BatchIndexAttrs{count};
}

OpDef batch_gather_op() {
  OpDef op;
  op.name = "batch_gather";
  op.doc = "The elements of each part of a batch at indices of its own along the next axis.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"params", "indices"};
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.attrs = schema_of<BatchIndexAttrs>();
  op.traits = kMayRaise | kAnyType;
  op.infer = batch_gather_rule;
  set_parts<rows_of_batch_gather, run_batch_gather>(op);
  op.vjp = [](const VjpArgs& v) {
    const Expr ct(v.b, v.ct[0]), params(v.b, v.in[0]), indices(v.b, v.in[1]);
    return cotangents(call("batch_segment_sum", ct, indices, params, v.attrs), none());
  };
  op.samples = {indexed_sample({{2, 3, 2}, {2, 4}}, batch_dims(1), kIndexed),
                indexed_sample({{2, 2, 3}, {2, 2, 2, 2}}, batch_dims(2), kIndexed),
                indexed_sample({{5, 3}, {5}}, batch_dims(1), kIndexed, {1, 1}),
                indexed_sample({{5, 4, 2}, {5, 3}}, batch_dims(1), kIndexed, {1, 1})};
  return op;
}

Inferred batch_segment_sum_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  check_dtype(args, 1, kIndices);
  check_min_rank(args, 2, 1);
  ValueType like = args.in[2];
  const ValueType gathered = batch_gathered(args, like, args.in[1]);
  SG_CHECK_VALUE(
      same_shape(args, args.in[0], gathered), args.op.name,
      "'values' must have the shape that batch_gather makes of 'like' and 'indices': got ",
      shapes_of_operands(args), ".");
  like.dtype = args.in[0].dtype;
  const bool by_example =
      args.in[0].batch == gathered.batch && has_examples_apart(args, like, args.in[1]);
  return by_example ? one_result(args, like) : Inferred{{like}, Locality::kFullBatch};
}

OpDef batch_segment_sum_op() {
  OpDef op;
  op.name = "batch_segment_sum";
  op.doc =
      "Zeros in the shape of another value, to each part of which values are added at indices of "
      "its own, in order.";
  op.min_arity = op.max_arity = 3;
  op.operands = {"values", "indices", "like"};
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.attrs = schema_of<BatchIndexAttrs>();
  op.traits = kMayRaise;
  op.infer = batch_segment_sum_rule;
  op.kernel = batch_segment_sum_kernel;
  op.vjp = [](const VjpArgs& v) {
    return cotangents(call("batch_gather", Expr(v.b, v.ct[0]), Expr(v.b, v.in[1]), v.attrs), none(),
                      none());
  };
  op.type_only = 1u << 2;
  op.samples = {indexed_sample({{2, 4, 2}, {2, 4}, {2, 3, 2}}, batch_dims(1), kSegments),
                indexed_sample({{5, 6}, {5, 6}, {5, 4}}, batch_dims(1), kSegments, {1, 1, 1})};
  return op;
}

// ---- segments along axis 0 ----

// Along the examples, those of the replica.
Inferred segment_extreme_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  check_dtype(args, 1, kIndices);
  check_min_rank(args, 2, 1);
  const ValueType &values = args.in[0], &indices = args.in[1];
  ValueType y = ordinary_type(args, args.in[2]);
  const int rank = indices.shape.rank();
  bool ok = values.shape.rank() == rank + y.shape.rank() - 1;
  for (int i = 0; ok && i < values.shape.rank(); ++i) {
    const Size size = i < rank ? size_along(args, indices, i) : size_along(args, y, i - rank + 1);
    ok = same_size(args, size_along(args, values, i), size);
  }
  SG_CHECK_VALUE(ok, args.op.name,
                 "'values' must have the axes of 'indices', then those of 'like' behind the first: "
                 "got ",
                 shapes_of_operands(args), ".");
  ExampleAxis kept = args.in[2].batch;
  if (kept.exists()) kept.axis += rank - 1;
  const bool by_example = args.in[2].batch.axis > 0 && !indices.batched() && values.batch == kept;
  if (by_example) y = args.in[2];
  y.dtype = values.dtype;
  return by_example ? one_result(args, y) : Inferred{{y}, Locality::kFullBatch};
}

// Ties share the cotangent equally, as in TensorFlow.
Values segment_extreme_vjp(const VjpArgs& v) {
  const Expr ct(v.b, v.ct[0]), x(v.b, v.in[0]), indices(v.b, v.in[1]), y(v.b, v.out[0]);
  const Attrs first = IndexAttrs{.axis = 0};
  const Expr chosen = x == call("gather", y, indices, first);
  const Expr count = call("segment_sum", cast(chosen, x.dtype()), indices, y, first);
  const Expr share = ct / select(count == 0.0, 1.0, count);
  const Expr gradient = select(chosen, call("gather", share, indices, first), 0.0);
  return cotangents(gradient.type() == x.type() ? gradient : call("reshape_like", gradient, x),
                    none(), none());
}

OpDef segment_extreme_op(const char* name, const char* doc, Kernel kernel) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.min_arity = op.max_arity = 3;
  op.operands = {"values", "indices", "like"};
  op.traits = kMayRaise;
  op.infer = segment_extreme_rule;
  op.kernel = kernel;
  op.vjp = segment_extreme_vjp;
  op.type_only = 1u << 2;
  op.samples = {indexed_sample({{6}, {6}, {2}}, {}, kSegments, {}, 2),
                indexed_sample({{2, 3, 2}, {2, 3}, {2, 2}}, {}, kSegments, {}, 2),
                indexed_sample({{5, 2}, {5}, {2, 2}}, {}, kSegments, {1, 1, 0}, 2)};
  return op;
}

Inferred segment_last_rule(const InferArgs& args) {
  check_dtype(args, 0, kIndices);
  check_min_rank(args, 1, 1);
  ValueType like = ordinary_type(args, args.in[1]);
  return {{{DType::kInt64, {like.shape[0]}, {}}}, Locality::kFullBatch};
}

OpDef segment_last_op() {
  OpDef op;
  op.name = "segment_last";
  op.doc =
      "For each row of another value, the last position (int64) in indices that names it, or -1.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"indices", "like"};
  op.traits = kNoGradient | kMayRaise;
  op.infer = segment_last_rule;
  op.kernel = segment_last_kernel;
  op.type_only = 1u << 1;
  op.samples = {indexed_sample({{6}, {4, 2}}, {}, {DType::kInt64, DType::kFloat32})};
  return op;
}

}  // namespace

std::vector<OpDef> scatter_ops() {
  return {ravel_index_op(),
          batch_gather_op(),
          batch_segment_sum_op(),
          segment_extreme_op(
              "segment_max",
              "The largest of the values at each index along axis 0; the least number where "
              "there are none.",
              segment_max_kernel),
          segment_extreme_op(
              "segment_min",
              "The smallest of the values at each index along axis 0; the largest number where "
              "there are none.",
              segment_min_kernel),
          segment_last_op()};
}

}  // namespace samegrad
