// Matrix products: shapes, gradients and rows of the table.
#include <array>

#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/linalg.h"
#include "ops/matmul_kernel.h"
#include "ops/rules.h"
#include "ops/tree_reduction.h"

namespace samegrad {
namespace {

// The operand without its last two axes.
ValueType type_without_matrix(const ValueType& type) {
  ValueType result{type.dtype, {}, {}};
  const int rank = type.shape.rank() - 2;
  for (int axis = 0; axis < rank; ++axis) result.shape.push_back(type.shape[axis]);
  if (type.batch.axis < rank) result.batch = type.batch;
  return result;
}

class ProductRule {
 public:
  ProductRule(const InferArgs& args, bool transpose_a, bool transpose_b)
      : args_(args), a_(args.in[0]), b_(args.in[1]) {
    check_same_dtype(args, 0, 2);
    check_dtype(args, 0, kSigned);
    check_min_rank(args, 0, 2);
    check_min_rank(args, 1, 2);
    axes_a_ = left_axes(a_.shape.rank(), transpose_a);
    axes_b_ = right_axes(b_.shape.rank(), transpose_b);
  }

  Inferred infer() {
    const bool tree = check_contraction();
    const std::array<ValueType, 2> leading{type_without_matrix(a_), type_without_matrix(b_)};
    const Inferred joined =
        broadcast_rule({args_.op, leading, args_.attrs, args_.symbols}, a_.dtype);
    ValueType result = joined.types[0];
    append(result, a_, axes_a_.kept);
    append(result, b_, axes_b_.kept);
    return {{result}, tree ? Locality::kBatchReduction : locality(result, joined)};
  }

 private:
  static bool has_examples_on(const ValueType& type, int axis) {
    return type.batched() && type.batch.axis == axis;
  }

  // True if the examples are contracted.
  bool check_contraction() {
    const int k_a = axes_a_.contracted, k_b = axes_b_.contracted;
    if (!same_size(args_, size_along(args_, a_, k_a), size_along(args_, b_, k_b))) {
      fail(ErrorKind::kValue, args_.op.name, "inner dimensions must match: got ", args_.shape_of(0),
           " and ", args_.shape_of(1), ".");
    }
    const bool a = has_examples_on(a_, k_a), b = has_examples_on(b_, k_b);
    const bool same = a_.batch.symbol == b_.batch.symbol &&
                      a_.batch.rows_per_example == b_.batch.rows_per_example;
    if (a && b && same) return true;
    if (a) make_ordinary(a_);
    if (b) make_ordinary(b_);
    return false;
  }

  void append(ValueType& result, ValueType& operand, int axis) {
    // All pairs of examples: the second axis becomes an ordinary one.
    if (result.batched() && has_examples_on(operand, axis)) make_ordinary(operand);
    if (has_examples_on(operand, axis)) {
      result.batch = operand.batch;
      result.batch.axis = result.shape.rank();
    }
    result.shape.push_back(operand.shape[axis]);
  }

  void make_ordinary(ValueType& type) {
    const bool same = joins_replicas(args_.symbols, std::size_t(type.batch.symbol));
    (same ? shared_ : mixed_) = true;
    type = ordinary_type(args_, type);
  }

  // `leading`: the axes before the matrices, joined.
  Locality locality(const ValueType& result, const Inferred& leading) const {
    const bool mixes = mixed_ || (leading.types[0].batched() && !is_per_example(leading.locality));
    if (mixes || !result.batched()) return Locality::kFullBatch;
    const bool rows = a_.batch.axis == 0 && !b_.batched();
    const bool tiles = result.shape.rank() == 2 ? rows : leading.locality == Locality::kPerExample;
    const bool slices = result.batch.axis == 0 && tiles && !shared_;
    return slices ? Locality::kPerExample : Locality::kInnerExample;
  }

  const InferArgs& args_;
  ValueType a_, b_;
  MatrixAxes axes_a_{}, axes_b_{};
  bool mixed_ = false;   // examples of this replica became ordinary rows
  bool shared_ = false;  // examples of all replicas did
};

// Sums the leading axes along which the operand was repeated.
Expr sum_to_operand(Expr gradient, Expr operand) {
  const ValueType from = gradient.type(), to = operand.type();
  if (from == to) return gradient;
  const int missing = from.shape.rank() - to.shape.rank();
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < from.shape.rank() - 2; ++axis) {
    const auto& symbols = gradient.builder().graph().symbols;
    const bool repeated =
        axis < missing || (is_one(symbols, to, axis - missing) && !is_one(symbols, from, axis));
    if (repeated) axes.push_back(axis);
  }
  const Expr sum = axes.empty() ? gradient : reduce_sum(gradient, std::move(axes));
  return sum.type() == to ? sum : call("reshape_like", sum, operand);
}

Expr swap_last_axes(Expr x) {
  std::vector<std::int64_t> perm;
  for (int axis = 0; axis < x.type().shape.rank(); ++axis) perm.push_back(axis);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return call("transpose", x, TransposeAttrs{.perm = std::move(perm)});
}

// All leading axes merged with the rows.
Expr flatten_rows(Expr x) {
  const Shape& shape = x.type().shape;
  return call("reshape", x, ReshapeAttrs{.shape = {-1, shape[shape.rank() - 1]}});
}

Expr examples_first(Expr x) {
  const int own = x.type().batch.axis;
  if (own <= 0) return x;
  std::vector<std::int64_t> perm{own};
  for (int axis = 0; axis < x.type().shape.rank(); ++axis) {
    if (axis != own) perm.push_back(axis);
  }
  return call("transpose", x, TransposeAttrs{.perm = std::move(perm)});
}

// True if a, not transposed, and ct have the same example axis, and it is not the last one.
bool has_rows_of_examples(const ValueType& a, const ValueType& ct) {
  const int last = a.shape.rank() - 1;
  return a.batch == ct.batch && a.batch.axis != last && ct.batch.axis != last;
}

Expr gradient_of_b(Expr a, Expr b, Expr ct, bool transpose_a, bool transpose_b) {
  // One matrix for all rows: one contraction over all rows, over the examples among them, those of
  // an example (its time steps, say) one after the other.
  if (b.type().shape.rank() == 2 && a.type().shape.rank() > 2) {
    const Expr rows = transpose_a ? swap_last_axes(a) : a;
    if (has_rows_of_examples(rows.type(), ct.type())) {
      const Expr x = flatten_rows(examples_first(rows)), y = flatten_rows(examples_first(ct));
      return transpose_b ? product(y, x, true, false) : product(x, y, true, false);
    }
  }
  return transpose_b ? product(ct, a, true, transpose_a) : product(a, ct, !transpose_a, false);
}

Values matmul_vjp(const VjpArgs& v) {
  const auto [transpose_a, transpose_b] = v.attrs.as<MatmulAttrs>();
  const Expr a(v.b, v.in[0]), b(v.b, v.in[1]), ct(v.b, v.ct[0]);
  const Expr da =
      transpose_a ? product(b, ct, transpose_b, true) : product(ct, b, false, !transpose_b);
  const Expr db = gradient_of_b(a, b, ct, transpose_a, transpose_b);
  return cotangents(sum_to_operand(da, a), sum_to_operand(db, b));
}

Inferred matmul_rule(const InferArgs& args) {
  const auto& attrs = args.attrs.as<MatmulAttrs>();
  return ProductRule(args, attrs.transpose_a, attrs.transpose_b).infer();
}

std::vector<Sample> matmul_samples() {
  const auto sample = [](std::vector<std::vector<std::int64_t>> shapes, bool transpose_a,
                         bool transpose_b, std::vector<std::uint8_t> batched) {
    Sample s;
    s.shapes = std::move(shapes);
    s.attrs = MatmulAttrs{transpose_a, transpose_b};
    s.batched = std::move(batched);
    return s;
  };
  return {sample({{2, 3}, {3, 4}}, false, false, {}),
          sample({{3, 2}, {3, 4}}, true, false, {}),
          sample({{2, 3}, {4, 3}}, false, true, {}),
          sample({{3, 2}, {4, 3}}, true, true, {}),
          sample({{2, 1, 2, 3}, {3, 3, 4}}, false, false, {}),
          sample({{2, 3, 5}, {5, 2}}, false, false, {}),
          sample({{5, 7}, {7, 3}}, false, false, {1, 0}),
          sample({{5, 7}, {3, 7}}, false, true, {1, 0}),
          sample({{9, 3}, {9, 4}}, true, false, {1, 1}),
          sample({{5, 2, 3}, {5, 3, 2}}, false, false, {1, 1}),
          sample({{5, 2, 2, 3}, {5, 2, 4, 3}}, false, true, {1, 1}),
          sample({{5, 3, 2}, {5, 3, 4}}, true, false, {1, 1}),
          sample({{5, 3, 2}, {2, 4}}, false, false, {1, 0}),
          sample({{5, 2, 3}, {2, 4}}, true, false, {1, 0}),
          sample({{4, 3}, {5, 3, 2}}, false, false, {0, 1}),
          sample({{4, 5}, {3, 4}}, true, true, {0, 1})};
}

double product_flops(const CostArgs& args, bool transpose_a) {
  const Shape& a = args.in[0].shape;
  return 2.0 * double(args.out[0].size()) * double(a[a.rank() - (transpose_a ? 2 : 1)]);
}

OpDef matmul_op() {
  OpDef op;
  op.name = "matmul";
  op.doc =
      "Matrix product over the last two axes; leading axes broadcast. Each element is one chain of "
      "fused multiply-adds in the order of the contraction, over examples the fixed tree.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"a", "b"};
  op.linearity = Linearity::kProduct;
  op.attrs = schema_of<MatmulAttrs>();
  op.infer = matmul_rule;
  op.kernel = matmul_kernel;
  op.tree = {.state = product_state,
             .open = open_product,
             .leaf = product_leaf,
             .combine = combine_elements<BinaryFn::k_add>,
             .neutral = neutral_zeros,
             .subtree = product_subtree,
             .fold_bytes = product_fold_bytes};
  op.vjp = matmul_vjp;
  op.with_bias = "matmul_bias";
  op.grouped = {grouped_matmul, is_grouped_gemm};
  op.prepacking = matmul_prepacking();
  op.flops = [](const CostArgs& args) {
    return product_flops(args, args.attrs.as<MatmulAttrs>().transpose_a);
  };
  op.samples = matmul_samples();
  return op;
}

Inferred matmul_bias_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_same_dtype(args, 0, 3);
  Inferred inferred =
      ProductRule(args, false, args.attrs.as<MatmulBiasAttrs>().transpose_b).infer();
  if (inferred.locality == Locality::kBatchReduction) inferred.locality = Locality::kFullBatch;
  const Shape& y = inferred.types[0].shape;
  SG_CHECK_VALUE(!args.in[2].batched() && args.in[2].shape == Shape({y[y.rank() - 1]}),
                 args.op.name, "'bias' must have one element per column of the product: got ",
                 args.shape_of(2), " for shapes ", args.shape_of(0), " and ", args.shape_of(1),
                 ".");
  return inferred;
}

Values matmul_bias_parts(const VjpArgs& v) {
  const Expr a(v.b, v.in[0]), b(v.b, v.in[1]), bias(v.b, v.in[2]);
  const auto& attrs = v.attrs.as<MatmulBiasAttrs>();
  const Expr y = product(a, b, false, attrs.transpose_b) + bias;
  return cotangents(attrs.activation == Activation::kRelu ? relu(y) : y);
}

OpDef matmul_bias_op() {
  OpDef op;
  op.name = "matmul_bias";
  op.doc = "activation(matmul(a, b) + bias) in one pass, with the bits of the separate steps.";
  op.min_arity = op.max_arity = 3;
  op.operands = {"a", "b", "bias"};
  op.attrs = schema_of<MatmulBiasAttrs>();
  op.infer = matmul_bias_rule;
  op.kernel = matmul_bias_kernel;
  op.decompose = matmul_bias_parts;
  op.grouped = {grouped_matmul, is_grouped_gemm};
  op.prepacking = matmul_prepacking();
  op.flops = [](const CostArgs& args) { return product_flops(args, false); };
  const Attrs relu = MatmulBiasAttrs{{}, Activation::kRelu};
  const Attrs turned = MatmulBiasAttrs{{.transpose_b = true}, Activation::kNone};
  op.samples = {{.shapes = {{2, 3}, {3, 4}, {4}}, .attrs = relu},
                {.shapes = {{5, 7}, {3, 7}, {3}}, .attrs = turned, .batched = {1, 0, 0}},
                {.shapes = {{5, 2, 3}, {3, 4}, {4}}, .attrs = relu, .batched = {1, 0, 0}}};
  return op;
}

}  // namespace

std::vector<OpDef> matmul_ops() {
  return {matmul_op(), matmul_bias_op()};
}

}  // namespace samegrad
