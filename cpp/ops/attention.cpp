// Scaled dot-product attention and its gradient: rules, derivatives and rows of the table.
#include "ops/attention.h"

#include <optional>

#include "ops/expr.h"
#include "ops/function_flops.h"
#include "ops/random_attributes.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

constexpr int kMaxAttentionOperands = 16;

// Query, key, value, perhaps masks and the key of a dropout from an operand on.
class AttentionRule {
 public:
  AttentionRule(const InferArgs& args, int first)
      : args_(args),
        first_(first),
        drops_(args.attrs.as<AttentionAttrs>().rate.as<double>() > 0),
        masks_end_(int(args.in.size()) - (drops_ ? 1 : 0)) {}

  void check() const {
    SG_CHECK_VALUE(masks_end_ >= first_ + 3, args_.op.name,
                   "the last operand of a dropout is its key: got none.");
    check_dtype(args_, 0, kFloats);
    check_same_dtype(args_, 0, first_ + 3);
    for (int k = 0; k < masks_end_; ++k) {
      SG_CHECK_VALUE(type(k).shape.rank() == 4, args_.op.name, "operand ", k,
                     " must have 4 axes: got shape ", args_.shape_of(k), ".");
    }
    const int q = first_, k = first_ + 1, v = first_ + 2;
    equal(q, 0, k, 0, "batches");
    equal(q, 0, v, 0, "batches");
    equal(k, 1, v, 1, "the lengths of key and value");
    equal(q, 2, k, 2, "numbers of heads");
    equal(q, 2, v, 2, "numbers of heads");
    equal(q, 3, k, 3, "the widths of query and key");
    for (int m = first_ + 3; m < masks_end_; ++m) check_mask(m);
    if (drops_) check_dropout();
  }

  // kPerExample if every example is computed by itself.
  Locality locality() const {
    const ExampleAxis& batch = type(first_).batch;
    if (batch.axis != 0) return Locality::kFullBatch;
    for (int k = 0; k < int(args_.in.size()); ++k) {
      const bool shared = k >= masks_end_ || (k >= first_ + 3 && type(k).shape[0] == 1);
      const bool for_all = shared && !type(k).batched();
      if (type(k).batch != batch && !for_all) return Locality::kFullBatch;
    }
    return Locality::kPerExample;
  }

  const ValueType& type(int k) const { return args_.in[std::size_t(k)]; }

 private:
  bool same(int a, int axis_a, int b, int axis_b) const {
    return same_size(args_, size_along(args_, type(a), axis_a), size_along(args_, type(b), axis_b));
  }

  void equal(int a, int axis_a, int b, int axis_b, const char* what) const {
    SG_CHECK_VALUE(same(a, axis_a, b, axis_b), args_.op.name, what, " must be equal: got shapes ",
                   args_.shape_of(a), " and ", args_.shape_of(b), ".");
  }

  void check_mask(int m) const {
    const int q = first_, k = first_ + 1;
    check_dtype(args_, m, kBools);
    const bool fits = fits_axis(m, 0, q, 0) && fits_axis(m, 1, q, 2) && fits_axis(m, 2, q, 1) &&
                      fits_axis(m, 3, k, 1);
    SG_CHECK_VALUE(
        fits, args_.op.name, "the mask must broadcast to (batch, heads, queries, keys): got ",
        args_.shape_of(m), " for query ", args_.shape_of(q), " and key ", args_.shape_of(k), ".");
  }

  // The dropped weights follow from the indices of the examples.
  void check_dropout() const {
    const auto& attrs = args_.attrs.as<AttentionAttrs>();
    check_draw_key(args_, type(masks_end_));
    SG_CHECK_VALUE(attrs.rate.as<double>() < 1, args_.op.name, "the rate must be below 1: got ",
                   attrs.rate.as<double>(), ".");
    SG_CHECK_TYPE(bit_of(attrs.draw) & kFloats & kComputed, args_.op.name,
                  "draws are of float32 or float64: got ", name_of(attrs.draw), ".");
    SG_CHECK_VALUE(type(first_).batch.axis == 0, args_.op.name,
                   "a dropout needs examples on axis 0: got ", to_string(type(first_)), ".");
  }

  bool fits_axis(int m, int axis_m, int x, int axis_x) const {
    return type(m).shape[axis_m] == 1 || same(m, axis_m, x, axis_x);
  }

  const InferArgs& args_;
  int first_;
  bool drops_;
  int masks_end_;
};

Inferred attention_rule(const InferArgs& args) {
  const AttentionRule rule(args, 0);
  rule.check();
  ValueType y = args.in[0];
  if (y.batch.axis == 3) y = ordinary_type(args, y);
  y.shape[3] = dim_of(args.symbols, size_along(args, args.in[2], 3));
  return {{y}, rule.locality()};
}

// ---- the same in plain rows ----

Expr heads_first(Expr x) {
  return call("transpose", x, TransposeAttrs{.perm = {0, 2, 1, 3}});
}
Expr multiply(Expr a, Expr b, bool transpose_a, bool transpose_b) {
  return call("matmul", a, b, MatmulAttrs{.transpose_a = transpose_a, .transpose_b = transpose_b});
}

// Operands from `first` on.
class AttentionParts {
 public:
  AttentionParts(const VjpArgs& v, std::size_t first)
      : q(v.b, v.in[first]),
        k(v.b, v.in[first + 1]),
        v(v.b, v.in[first + 2]),
        attrs(v.attrs.as<AttentionAttrs>()),
        scale(attrs.scale.as<double>()) {
    for (const Value mask : masks_among(std::span<const Value>(v.in), first, attrs)) {
      allowed_ = allowed_ ? *allowed_ && Expr(v.b, mask) : Expr(v.b, mask);
    }
    if (attrs.rate.as<double>() > 0) key_ = Expr(v.b, v.in.back());
  }

  Expr weights() const {
    Expr scores = multiply(heads_first(q), heads_first(k), false, true) * scale;
    if (allowed_) scores = select(*allowed_, scores, masked_score(q.dtype()));
    const Expr p = call("softmax", scores);
    return attrs.zero_blind ? masked(p) : p;
  }
  Expr masked(Expr x) const { return allowed_ ? select(*allowed_, x, 0.0) : x; }

  // The mask of the weights that dropout keeps: drawn once, for the weights and their gradients.
  std::optional<Expr> draw_kept(Expr p) const {
    if (!key_) return std::nullopt;
    const Expr drawn = call("stateless_random_uniform_like", *key_, p,
                            StatelessLikeAttrs(DrawAttrs{.dtype = attrs.draw}));
    return drawn >= attrs.rate.as<double>();
  }
  Expr dropped(Expr p, const std::optional<Expr>& kept) const {
    return kept ? select(*kept, p * kept_scale(), 0.0) : p;
  }
  Expr undropped(Expr g, const std::optional<Expr>& kept) const {
    return kept ? select(*kept, g, 0.0) * kept_scale() : g;
  }

  const Expr q, k, v;
  const AttentionAttrs& attrs;
  const double scale;

 private:
  double kept_scale() const { return 1 / (1 - attrs.rate.as<double>()); }

  std::optional<Expr> allowed_, key_;
};

Values attention_decompose(const VjpArgs& v) {
  const AttentionParts in(v, 0);
  const Expr p = in.weights();
  const std::optional<Expr> kept = in.draw_kept(p);
  return cotangents(heads_first(multiply(in.dropped(p, kept), heads_first(in.v), false, false)));
}

// The gradient in the form that differentiation of the decomposition gives.
Values attention_grad_decompose(const VjpArgs& v) {
  const AttentionParts in(v, 1);
  const Expr ct = heads_first(Expr(v.b, v.in[0])), p = in.weights();
  const std::optional<Expr> kept = in.draw_kept(p);
  const Expr of_weights = in.undropped(multiply(ct, heads_first(in.v), false, true), kept);
  const int last = p.type().shape.rank() - 1;
  const Expr of_scores =
      in.masked(p * (of_weights - reduce_sum(of_weights * p, {last}, true))) * in.scale;
  return cotangents(heads_first(multiply(of_scores, heads_first(in.k), false, false)),
                    heads_first(multiply(of_scores, heads_first(in.q), true, false)),
                    heads_first(multiply(in.dropped(p, kept), ct, true, false)));
}

Values attention_vjp(const VjpArgs& v) {
  Values in{v.ct[0]};
  in.insert(in.end(), v.in.begin(), v.in.end());
  Values gradients =
      v.b.apply(OpRegistry::instance().get("dot_product_attention_grad"), in, v.attrs);
  gradients.resize(v.in.size(), kNoValue);
  return gradients;
}

Inferred attention_grad_rule(const InferArgs& args) {
  const AttentionRule rule(args, 1);
  rule.check();
  return {{args.in[1], args.in[2], args.in[3]}, rule.locality()};
}

std::vector<Sample> attention_samples(bool backward) {
  const DType real = DType::kFloat32;
  std::vector<Sample> samples;
  const auto add = [&](std::int64_t queries, std::int64_t keys, bool masked, bool batched,
                       double rate = 0) {
    Sample sample;
    sample.shapes = {{3, queries, 2, 5}, {3, keys, 2, 5}, {3, keys, 2, 4}};
    if (backward) sample.shapes.insert(sample.shapes.begin(), {3, queries, 2, 4});
    sample.dtypes.assign(sample.shapes.size(), real);
    if (batched) sample.batched.assign(sample.shapes.size(), 1);
    if (masked) {
      sample.shapes.push_back({batched ? 3 : 1, 1, queries, keys});
      sample.dtypes.push_back(DType::kBool);
      if (batched) sample.batched.push_back(1);
      sample.integer_high = 2;
    }
    if (rate > 0) {  // padded keys, and the key of the draw
      sample.shapes.insert(sample.shapes.end(), {{3, 1, 1, keys}, {2}});
      sample.dtypes.insert(sample.dtypes.end(), {DType::kBool, DType::kUInt32});
      sample.batched.insert(sample.batched.end(), {1, 0});
    }
    sample.attrs = AttentionAttrs{.scale = 0.5, .zero_blind = rate > 0, .rate = rate};
    samples.push_back(std::move(sample));
  };
  add(3, 4, false, false);
  add(2, 3, true, false);
  add(4, 3, false, true);
  add(3, 3, true, true);
  add(3, 5, true, true, 0.4);
  return samples;
}

// Scores and weighted sums of values: a product each, of queries by keys. The gradient computes the
// scores again, and the gradients of the weights, of the queries, of the keys and of the values.
template <int kFirst>
double attention_flops(const CostArgs& args) {
  const Shape& query = args.in[kFirst].shape;
  const Shape& value = args.in[kFirst + 2].shape;
  const double pairs = double(query[0]) * double(query[1]) * double(query[2]) * double(value[1]);
  const double width = double(query[3]), value_width = double(value[3]);
  const double products = kFirst == 0 ? width + value_width : 3 * width + 2 * value_width;
  const double seen = args.attrs.as<AttentionAttrs>().causal ? 0.5 : 1;
  return seen * pairs * (2 * products + kPolynomialFlops);
}

OpDef attention_op() {
  OpDef op;
  op.name = "dot_product_attention";
  op.doc =
      "softmax(scale * query keyᵀ) value for each head, of (batch, length, heads, width); masks "
      "say which pairs count, all of them together, and weights may be dropped by a key, which is "
      "the last operand. No matrix of all pairs is in memory; the bits are those of its parts.";
  op.min_arity = 3;
  op.max_arity = kMaxAttentionOperands;
  op.operands = {"query", "key", "value", "masks"};
  op.attrs = schema_of<AttentionAttrs>();
  op.infer = attention_rule;
  op.flops = attention_flops<0>;
  op.kernel = attention_kernel;
  op.vjp = attention_vjp;
  op.decompose = attention_decompose;
  op.samples = attention_samples(false);
  return op;
}

OpDef attention_grad_op() {
  OpDef op;
  op.name = "dot_product_attention_grad";
  op.doc = "Gradients of dot_product_attention with respect to query, key and value.";
  op.min_arity = 4;
  op.max_arity = kMaxAttentionOperands + 1;
  op.operands = {"ct", "query", "key", "value", "masks"};
  op.attrs = schema_of<AttentionAttrs>();
  op.traits = kBackward;
  op.infer = attention_grad_rule;
  op.flops = attention_flops<1>;
  op.kernel = attention_grad_kernel;
  op.decompose = attention_grad_decompose;
  op.samples = attention_samples(true);
  return op;
}

}  // namespace

std::vector<OpDef> attention_ops() {
  return {attention_op(), attention_grad_op()};
}

}  // namespace samegrad
