// Cross-entropy of a softmax over the last axis, with class numbers or distributions as labels.
#include "ops/cross_entropy.h"

#include <cmath>

#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/expr.h"
#include "ops/function_flops.h"
#include "ops/partition.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

// The logits' type without the classes.
ValueType type_without_classes(const ValueType& logits) {
  ValueType type = logits;
  const int last = logits.shape.rank() - 1;
  type.shape.erase(last);
  if (type.batch.axis == last) type.batch = {};
  return type;
}

// The type both have; they must not broadcast.
ValueType common_type(const InferArgs& args, const ValueType& expected, const ValueType& labels,
                      const char* rule) {
  SG_CHECK_VALUE(same_shape(args, expected, labels), args.op.name,
                 "labels must have the shape of the logits", rule, ": got logits ",
                 args.shape_of(0), " and labels ", args.shape_of(1), "; reshape the labels.");
  const ValueType both[] = {expected, labels};
  return broadcast_rule({args.op, both, args.attrs, args.symbols}, expected.dtype).types[0];
}

Locality row_locality(const InferArgs& args, std::span<const ValueType> out) {
  const ValueType& logits = args.in[0];
  for (const ValueType& type : args.in) {
    if (type.batched() != logits.batched()) return Locality::kFullBatch;
  }
  return logits.batch.axis == logits.shape.rank() - 1 ? Locality::kFullBatch
                                                      : per_example(args.in, out);
}

Inferred sparse_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_dtype(args, 1, kIntegers);
  check_min_rank(args, 0, 1);
  const ValueType& logits = args.in[0];
  const ValueType loss =
      common_type(args, type_without_classes(logits), args.in[1], " without the last axis");
  const ValueType types[] = {loss, logits};
  return {{loss, logits}, row_locality(args, types)};
}

// One unit for each label, which is the last operand.
std::int64_t count_labels(const CostArgs& args) {
  return args.in.back().size();
}

// The labels [begin, end) as int64, checked.
const std::int64_t* class_numbers(const KernelArgs& args, std::int64_t begin, std::int64_t end,
                                  std::int64_t classes) {
  const View& labels = args.in.back();
  const std::int64_t n = end - begin;
  const std::byte* some =
      labels.as<const std::byte>() + begin * std::int64_t(size_of(labels.dtype));
  const auto* numbers = reinterpret_cast<const std::int64_t*>(some);
  if (labels.dtype != DType::kInt64) {
    auto* cast = static_cast<std::int64_t*>(args.scratch.take(std::size_t(n) * sizeof *numbers));
    kernels().cast(labels.dtype, DType::kInt64)(some, cast, n);
    numbers = cast;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    if (numbers[i] >= 0 && numbers[i] < classes) continue;
    fail(ErrorKind::kInvalidArgument, "sparse_softmax_cross_entropy",
         "labels must be class numbers in [0, ", classes, "): got ", numbers[i], " at ",
         place_of(args, labels, begin + i),
         "; check the labels, or give the logits as many columns as there are classes.");
  }
  return numbers;
}

// The target distribution of smoothed labels. A single class leaves nothing to smooth.
struct Smoothed {
  Smoothed(const KernelArgs& args, std::int64_t classes) : Smoothed(args.attrs, classes) {}
  Smoothed(const Attrs& attrs, std::int64_t classes) {
    const double smoothing = attrs.as<CrossEntropyAttrs>().smoothing.as<double>();
    if (smoothing == 0 || classes < 2) return;
    at_label = 1 - smoothing;
    elsewhere = smoothing / double(classes - 1);
  }
  bool any() const { return at_label != 1; }

  double at_label = 1, elsewhere = 0;
};

// Adds elsewhere * sum(x[label] - x), which makes of -log p[label] the smoothed loss.
template <class T>
void add_smoothing(const KernelArgs& args, std::int64_t begin, std::int64_t end,
                   const std::int64_t* labels, T elsewhere) {
  const View& x = args.in[0];
  const std::int64_t n = x.shape[x.shape.rank() - 1], rows = end - begin;
  const BinaryKernel sub = kernels().binary(BinaryFn::k_sub, x.dtype);
  const auto sum = kernels().row_reduce(ReduceFn::kSum, x.dtype);
  T* behind = static_cast<T*>(args.scratch.take(std::size_t(n) * sizeof(T)));
  const T* row = x.as<const T>() + begin * n;
  T* loss = args.out[0].as<T>() + begin;
  for (std::int64_t r = 0; r < rows; ++r, row += n) {
    if (std::isinf(loss[r])) continue;  // the label has probability 0
    T total;
    sub(row + labels[r], row, behind, n, 0, 1);
    sum(behind, &total, 1, n);
    loss[r] += elsewhere * total;
  }
}

void run_sparse(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& x = args.in[0];
  const Scratch::Frame frame(args.scratch);
  const std::int64_t n = x.shape[x.shape.rank() - 1], item = std::int64_t(size_of(x.dtype));
  const std::int64_t* labels = class_numbers(args, begin, end, n);
  kernels().softmax(x.dtype).sparse_cross_entropy(
      x.as<std::byte>() + begin * n * item, labels, args.out[0].as<std::byte>() + begin * item,
      args.out[1].as<std::byte>() + begin * n * item, end - begin, n);
  const Smoothed smoothed(args, n);
  if (!smoothed.any()) return;
  visit<kFloats & kComputed>("sparse_softmax_cross_entropy", x.dtype, [&]<class T>() {
    add_smoothing<T>(args, begin, end, labels, T(smoothed.elsewhere));
  });
}

Values sparse_vjp(const VjpArgs& args) {
  const Expr p(args.b, args.out[1]), labels(args.b, args.in[1]);
  Values gradients{kNoValue, kNoValue};
  if (args.ct[0] != kNoValue) {
    const Expr ct(args.b, args.ct[0]);
    gradients[0] = call("sparse_softmax_cross_entropy_grad", ct, p, labels, args.attrs).value();
  }
  // The derivative of the gradient flows back through the probabilities.
  if (args.ct[1] != kNoValue) {
    const Expr ct(args.b, args.ct[1]);
    const Expr sum = reduce_sum(ct * p, {p.type().shape.rank() - 1}, true);
    const Expr through = p * (ct - sum);
    gradients[0] =
        gradients[0] == kNoValue ? through.value() : (Expr(args.b, gradients[0]) + through).value();
  }
  return gradients;
}

// Some labels; the tests draw them below integer_high.
Sample sparse_sample(std::vector<std::vector<std::int64_t>> shapes, std::vector<DType> dtypes,
                     std::vector<std::uint8_t> batched, double smoothing = 0) {
  Sample sample;
  sample.attrs = CrossEntropyAttrs{.smoothing = smoothing};
  sample.integer_high = double(shapes[shapes.size() - 2].back());
  sample.shapes = std::move(shapes);
  sample.dtypes = std::move(dtypes);
  sample.batched = std::move(batched);
  return sample;
}

OpDef sparse_op() {
  OpDef op;
  op.name = "sparse_softmax_cross_entropy";
  op.doc =
      "-log(softmax(logits)[label]) for each row, and the softmax itself; labels are class "
      "numbers. Smoothed: -sum(q * log(softmax(logits))), q being 1 - smoothing at the label and "
      "smoothing / (classes - 1) elsewhere, which is nowhere in memory.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"logits", "labels"};
  op.attrs = schema_of<CrossEntropyAttrs>();
  op.infer = sparse_rule;
  op.traits = kMayRaise;
  set_parts<count_labels, run_sparse>(op);
  op.flops = [](const CostArgs& args) { return kPolynomialFlops * double(args.out[1].size()); };
  op.vjp = sparse_vjp;
  op.samples = {sparse_sample({{2, 3}, {2}}, {DType::kFloat32, DType::kInt64}, {}),
                sparse_sample({{5, 10}, {5}}, {DType::kFloat32, DType::kInt32}, {1, 1}),
                sparse_sample({{5, 2, 3}, {5, 2}}, {DType::kFloat32, DType::kUInt8}, {1, 1}),
                sparse_sample({{5, 4}, {5}}, {DType::kFloat32, DType::kInt32}, {1, 1}, 0.1)};
  return op;
}

Inferred sparse_grad_rule(const InferArgs& args) {
  check_min_rank(args, 1, 1);
  const ValueType& probabilities = args.in[1];
  const ValueType rows = type_without_classes(probabilities);
  SG_CHECK_VALUE(
      same_shape(args, rows, args.in[0]) && same_shape(args, rows, args.in[2]), args.op.name,
      "'ct' and 'labels' must have the shape of 'probabilities' without the last axis: got ",
      shapes_of_operands(args), ".");
  const bool together = args.in[0].batched() == probabilities.batched() &&
                        args.in[2].batched() == probabilities.batched() &&
                        probabilities.batch.axis != probabilities.shape.rank() - 1;
  return together ? one_result(args, probabilities)
                  : Inferred{{probabilities}, Locality::kFullBatch};
}

// ct * (p - q), q being 1 at the label and 0 elsewhere, or that smoothed.
template <class T>
void sparse_grad(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& p = args.in[1];
  const Scratch::Frame frame(args.scratch);
  const std::int64_t n = p.shape[p.shape.rank() - 1], rows = end - begin;
  const std::int64_t* labels = class_numbers(args, begin, end, n);
  const BinaryKernel mul = kernels().binary(BinaryFn::k_mul, p.dtype);
  const BinaryKernel sub = kernels().binary(BinaryFn::k_sub, p.dtype);
  const Smoothed smoothed(args, n);
  const T expected = T(smoothed.at_label), elsewhere = T(smoothed.elsewhere);
  const T* ct = args.in[0].as<const T>() + begin;
  const T* x = p.as<const T>() + begin * n;
  T* y = args.out[0].as<T>() + begin * n;
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const T at_label = ct[r] * (x[labels[r]] - expected);
    if (smoothed.any()) sub(x, &elsewhere, y, n, 1, 0);
    mul(ct + r, smoothed.any() ? y : x, y, n, 0, 1);
    y[labels[r]] = at_label;
  }
}

void run_sparse_grad(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  visit<kFloats & kComputed>("sparse_softmax_cross_entropy_grad", args.in[1].dtype,
                             [&]<class T>() { sparse_grad<T>(args, begin, end); });
}

// The target distribution of a label, where the number of classes follows from the examples.
Expr expected_of(Expr labels, Expr p, std::int64_t classes, Scalar smoothing) {
  const Expr chosen = call("one_hot", labels, OneHotAttrs{.depth = classes, .dtype = p.dtype()});
  const Expr others = cast(call("size_value", p, SizeAttrs{.size = classes}), p.dtype()) - 1.0;
  const Expr elsewhere = smoothing.as<double>() / maximum(others, 1.0);
  return chosen * (1.0 - elsewhere * others) + (1.0 - chosen) * elsewhere;
}
Expr expected_of(Expr labels, Expr p, const Attrs& attrs) {
  const std::int64_t classes = dim(p, p.type().shape.rank() - 1);
  const Scalar smoothing = attrs.as<CrossEntropyAttrs>().smoothing;
  if (is_symbolic(classes) && smoothing.as<double>() != 0) {
    return expected_of(labels, p, classes, smoothing);
  }
  const Smoothed smoothed(attrs, classes);
  const OneHotAttrs one_hot{
      .depth = classes, .on = smoothed.at_label, .off = smoothed.elsewhere, .dtype = p.dtype()};
  return call("one_hot", labels, one_hot);
}

Values sparse_grad_decompose(const VjpArgs& args) {
  const Expr ct(args.b, args.in[0]), p(args.b, args.in[1]), labels(args.b, args.in[2]);
  const int last = p.type().shape.rank() - 1;
  const Expr column = call("expand_dims", ct, ExpandDimsAttrs{.axes = {last}});
  return {(column * (p - expected_of(labels, p, args.attrs))).value()};
}

OpDef sparse_grad_op() {
  OpDef op;
  op.name = "sparse_softmax_cross_entropy_grad";
  op.doc = "Gradient of sparse_softmax_cross_entropy with respect to the logits.";
  op.min_arity = op.max_arity = 3;
  op.operands = {"ct", "probabilities", "labels"};
  op.attrs = schema_of<CrossEntropyAttrs>();
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.traits = kBackward;
  op.infer = sparse_grad_rule;
  set_parts<count_labels, run_sparse_grad>(op);
  op.decompose = sparse_grad_decompose;
  const DType real = DType::kFloat32;
  op.samples = {sparse_sample({{2}, {2, 3}, {2}}, {real, real, DType::kInt64}, {}),
                sparse_sample({{5}, {5, 10}, {5}}, {real, real, DType::kInt32}, {1, 1, 1}),
                sparse_sample({{5}, {5, 4}, {5}}, {real, real, DType::kInt32}, {1, 1, 1}, 0.1)};
  return op;
}

Inferred dense_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_same_dtype(args, 0, 2);
  check_min_rank(args, 0, 1);
  const ValueType loss = type_without_classes(common_type(args, args.in[0], args.in[1], ""));
  return {{loss}, row_locality(args, {&loss, 1})};
}

void dense_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  const Scratch::Frame frame(args.scratch);
  const std::int64_t rows = y.size(), n = x.shape[x.shape.rank() - 1];
  void* terms = args.scratch.take(size_of(x.dtype) * std::size_t(x.size()));
  if (n > 0) kernels().softmax(x.dtype).log_softmax(x.data, terms, rows, n);
  kernels().binary(BinaryFn::k_mul, x.dtype)(args.in[1].data, terms, terms, x.size(), 1, 1);
  kernels().row_reduce(ReduceFn::kSum, x.dtype)(terms, y.data, rows, n);
  kernels().unary(UnaryFn::k_neg, x.dtype)(y.data, y.data, rows);
}

Values dense_decompose(const VjpArgs& args) {
  const Expr logits(args.b, args.in[0]), labels(args.b, args.in[1]);
  const Expr terms = labels * call("log_softmax", logits);
  return {(-reduce_sum(terms, {logits.type().shape.rank() - 1})).value()};
}

OpDef dense_op() {
  OpDef op;
  op.name = "softmax_cross_entropy";
  op.doc = "-sum(labels * log(softmax(logits))) over the last axis; labels are distributions.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"logits", "labels"};
  op.traits = kComposite;
  op.infer = dense_rule;
  op.kernel = dense_kernel;
  op.decompose = dense_decompose;
  op.samples = {{.shapes = {{2, 3}, {2, 3}}, .attrs = {}},
                {.shapes = {{5, 10}, {5, 10}}, .attrs = {}, .batched = {1, 1}}};
  return op;
}

}  // namespace

std::vector<OpDef> cross_entropy_ops() {
  return {sparse_op(), sparse_grad_op(), dense_op()};
}

}  // namespace samegrad
