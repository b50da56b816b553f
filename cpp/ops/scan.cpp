// Sums and products of the elements up to each one along an axis.
#include "ops/scan.h"

#include "kernels/table.h"
#include "ops/expr.h"
#include "ops/partition.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

// Along the examples, those of the replica are scanned.
Inferred of_lines(const InferArgs& args, const Inferred& along) {
  check_min_rank(args, 0, 1);
  const ValueType& x = args.in[0];
  const int axis = normalize_axis(args.attrs.as<ScanAttrs>().axis, x.shape.rank(), args.op.name);
  return x.batch.axis == axis ? Inferred{along.types, Locality::kFullBatch} : along;
}

Inferred scan_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  return of_lines(args, one_result(args, args.in[0]));
}

Lines scanned_lines(const CostArgs& args) {
  const Shape& shape = args.in[0].shape;
  return {shape, normalize_axis(args.attrs.as<ScanAttrs>().axis, shape.rank(), "scan")};
}

std::int64_t count_of_lines(const CostArgs& args) {
  return scanned_lines(args).count();
}

// Calls f(lines, where their first one begins, in bytes) for the lines [begin, end).
template <class F>
void for_each_lines(const KernelArgs& args, std::int64_t begin, std::int64_t end, const F& f) {
  const auto& attrs = args.attrs.as<ScanAttrs>();
  const Lines all = scanned_lines(cost_args(args));
  const auto item = std::int64_t(size_of(args.in[0].dtype));
  all.for_each(begin, end,
               [&](std::int64_t o, std::int64_t outer, std::int64_t column, std::int64_t width) {
                 f(ScanLines{.outer = outer,
                             .n = all.n,
                             .width = width,
                             .stride = all.columns,
                             .exclusive = attrs.exclusive,
                             .reverse = attrs.reverse},
                   (o * all.n * all.columns + column) * item);
               });
}

template <ScanFn kFn>
void run_scan(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& x = args.in[0];
  for_each_lines(args, begin, end, [&](const ScanLines& lines, std::int64_t first) {
    const Scratch::Frame frame(args.scratch);
    void* scratch = args.scratch.take(std::size_t(kScanRows * lines.width) * size_of(x.dtype));
    kernels().scan(kFn, x.dtype)(lines, x.as<char>() + first, args.out[0].as<char>() + first,
                                 scratch);
  });
}

Attrs turned(const Attrs& attrs) {
  ScanAttrs other = attrs.as<ScanAttrs>();
  other.reverse = !other.reverse;
  return other;
}

Values cumsum_vjp(const VjpArgs& v) {
  return cotangents(call("cumsum", Expr(v.b, v.ct[0]), turned(v.attrs)));
}

Expr affine_scan(Expr a, Expr b, const Attrs& attrs) {
  return call("affine_scan", a, b, attrs);
}

// An element is a factor of all products behind it: dx = (the product before it) · s, s being the
// cotangents behind it, each times the factors between. No division, so zeros are as good as
// others.
Values cumprod_vjp(const VjpArgs& v) {
  const auto& attrs = v.attrs.as<ScanAttrs>();
  const Expr x(v.b, v.in[0]), ct(v.b, v.ct[0]);
  const Attrs back = ScanAttrs{.axis = attrs.axis, .reverse = !attrs.reverse};
  if (attrs.exclusive) return cotangents(Expr(v.b, v.out[0]) * affine_scan(x, ct, back));
  const Expr before = call(
      "cumprod", x, ScanAttrs{.axis = attrs.axis, .exclusive = true, .reverse = attrs.reverse});
  return cotangents(before * (ct + affine_scan(x, x * ct, back)));
}

std::vector<Sample> scan_samples() {
  const auto sample = [](std::vector<std::int64_t> shape, ScanAttrs attrs,
                         std::vector<std::uint8_t> batched = {}) {
    return Sample{.shapes = {std::move(shape)}, .attrs = attrs, .batched = std::move(batched)};
  };
  return {sample({5}, {.axis = 0}),
          sample({2, 3}, {.axis = -1, .reverse = true}),
          sample({2, 4, 3}, {.axis = 1, .exclusive = true}),
          sample({5, 4}, {.axis = 1, .exclusive = true, .reverse = true}, {1}),
          sample({5, 4, 2}, {.axis = 1}, {1}),
          sample({5, 2}, {.axis = 0, .exclusive = true}, {1}),
          sample({5, 2}, {.axis = 0, .reverse = true}, {1})};
}

template <ScanFn kFn>
OpDef scan_op(const char* name, const char* doc, Values (*vjp)(const VjpArgs&)) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.attrs = schema_of<ScanAttrs>();
  if (kFn == ScanFn::kSum) op.linearity = Linearity::kSum;
  op.infer = scan_rule;
  set_parts<count_of_lines, run_scan<kFn>>(op);
  op.vjp = vjp;
  op.samples = scan_samples();
  return op;
}

Inferred affine_scan_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  check_same_dtype(args, 0, 2);
  SG_CHECK_VALUE(same_shape(args, args.in[0], args.in[1]), args.op.name,
                 "'a' and 'b' must have one shape: got ", shapes_of_operands(args), ".");
  return of_lines(args, broadcast_rule(args, args.in[0].dtype));
}

void run_affine_scan(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View &a = args.in[0], &b = args.in[1];
  for_each_lines(args, begin, end, [&](const ScanLines& lines, std::int64_t first) {
    kernels().affine_scan(a.dtype)(lines, a.as<char>() + first, b.as<char>() + first,
                                   args.out[0].as<char>() + first);
  });
}

// b reaches what is behind it through the factors between, as the cotangents reach b.
Values affine_scan_vjp(const VjpArgs& v) {
  const Expr a(v.b, v.in[0]), y(v.b, v.out[0]), ct(v.b, v.ct[0]);
  const Expr to_b = affine_scan(a, ct, turned(v.attrs));
  return cotangents(to_b * y, to_b);
}

OpDef affine_scan_op() {
  OpDef op;
  op.name = "affine_scan";
  op.doc =
      "y[0] = 0, y[i + 1] = b[i] + a[i] * y[i] along an axis; where a[i] is 0, y[i] is left out.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"a", "b"};
  op.attrs = schema_of<ScanAttrs>();
  op.infer = affine_scan_rule;
  set_parts<count_of_lines, run_affine_scan>(op);
  op.vjp = affine_scan_vjp;
  op.samples = {{.shapes = {{5}, {5}}, .attrs = ScanAttrs{.axis = 0}},
                {.shapes = {{2, 4, 3}, {2, 4, 3}}, .attrs = ScanAttrs{.axis = -2, .reverse = true}},
                {.shapes = {{5, 4}, {5, 4}}, .attrs = ScanAttrs{.axis = 1}, .batched = {1, 1}},
                {.shapes = {{5, 2}, {5, 2}},
                 .attrs = ScanAttrs{.axis = 0, .reverse = true},
                 .batched = {1, 1}}};
  return op;
}

}  // namespace

std::vector<OpDef> scan_ops() {
  return {scan_op<ScanFn::kSum>("cumsum", "The sum of the elements up to each one along an axis.",
                                cumsum_vjp),
          scan_op<ScanFn::kProd>(
              "cumprod", "The product of the elements up to each one along an axis.", cumprod_vjp),
          affine_scan_op()};
}

}  // namespace samegrad
