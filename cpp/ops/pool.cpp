// Pooling of images. Choosing maxima is linear once the places are known, so the gradient rows are
// each other's gradients.
#include "base/rounding.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/image_bands.h"
#include "ops/window.h"

namespace samegrad {
namespace {

// ---- shapes ----

ValueType pooled(const InferArgs& args, int operand) {
  check_images(args, operand);
  check_window_attrs(args);
  const Ints& window = args.attrs.as<PoolAttrs>().window;
  check_ints(args, "window", window, 2, 1);
  ValueType y = args.in[std::size_t(operand)];
  const Ints size = output_sizes(args, {y.shape[1], y.shape[2]}, window);
  y.shape[1] = size[0];
  y.shape[2] = size[1];
  return y;
}

// True if each window has a tap on the image along an axis. Dilated taps can all be in the padding
// on both sides. Padding is smaller than the window.
bool sees_image(std::int64_t size, std::int64_t stride, std::int64_t before, std::int64_t dilation,
                std::int64_t outputs) {
  for (std::int64_t o = 0; o < outputs && o * stride < before; ++o) {
    const std::int64_t start = o * stride - before;
    if (start + round_up(-start, dilation) >= size) return false;
  }
  return true;
}

void check_padding(const InferArgs& args, const ValueType& y) {
  const auto& attrs = args.attrs.as<PoolAttrs>();
  bool ok = true;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto axis = int(i) + 1;
    const std::int64_t extent = (attrs.window[i] - 1) * attrs.dilations[i] + 1;
    ok = ok && attrs.padding[2 * i] < extent && attrs.padding[2 * i + 1] < extent &&
         sees_image(args.in[0].shape[axis], attrs.strides[i], attrs.padding[2 * i],
                    attrs.dilations[i], y.shape[axis]);
  }
  SG_CHECK_VALUE(ok, args.op.name,
                 "padding must be smaller than the window, so that each window "
                 "sees the image: got padding ",
                 to_string(attrs.padding), ", window ", to_string(attrs.window), " and dilations ",
                 to_string(attrs.dilations), ".");
}

Inferred max_pool_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  const ValueType y = pooled(args, 0);
  check_padding(args, y);
  const Ints& window = args.attrs.as<PoolAttrs>().window;
  SG_CHECK_VALUE(window[0] * window[1] <= 256, args.op.name,
                 "a window may hold at most 256 elements: got ", window[0], " x ", window[1],
                 "; pool in two steps.");
  ValueType index = y;
  index.dtype = DType::kUInt8;
  return {{y, index}, one_result(args, y).locality};
}

Inferred avg_pool_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  const ValueType y = pooled(args, 0);
  check_padding(args, y);
  return one_result(args, y);
}

// ct of the pooled images; the result has the type of x_like.
Inferred grad_rule(const InferArgs& args, int x_like) {
  check_dtype(args, 0, kFloats);
  const ValueType y = pooled(args, x_like);
  for (int i = 0; i < x_like; ++i) {
    SG_CHECK_VALUE(same_shape(args, y, args.in[std::size_t(i)]), args.op.name, "'",
                   args.op.operands[std::size_t(i)],
                   "' must have the shape of the pooled images: got ", args.shape_of(i),
                   " for images of ", args.shape_of(x_like), ".");
  }
  ValueType x = args.in[std::size_t(x_like)];
  x.dtype = args.in[0].dtype;
  const bool aligned = args.in[0].batch == x.batch;
  return aligned ? one_result(args, x) : Inferred{{x}, Locality::kFullBatch};
}

Inferred max_pool_grad_rule(const InferArgs& args) {
  check_dtype(args, 1, bit_of(DType::kUInt8));
  return grad_rule(args, 2);
}

Inferred avg_pool_grad_rule(const InferArgs& args) {
  return grad_rule(args, 1);
}

Inferred take_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_dtype(args, 1, bit_of(DType::kUInt8));
  const ValueType y = pooled(args, 0);
  SG_CHECK_VALUE(same_shape(args, y, args.in[1]), args.op.name,
                 "'index' must have the shape of the pooled images: got ", args.shape_of(1),
                 " for images of ", args.shape_of(0), ".");
  const bool aligned = args.in[1].batch == y.batch;
  return aligned ? one_result(args, y) : Inferred{{y}, Locality::kFullBatch};
}

// ---- kernels ----

WindowGeometry geometry_of_pool(const Attrs& attrs, const Shape& x, const Shape& y) {
  const Ints& window = attrs.as<PoolAttrs>().window;
  return geometry_of(attrs.as<PoolAttrs>(), x, y, {window[0], window[1]});
}

// run(geometry, pixels of x, pixels of y, elements of y before them) for each band of each image of
// x and y.
template <class Run>
void for_each_pooled(const KernelArgs& args, const View& x, const View& y, const WindowGeometry& g,
                     const ImageBands& bands, const Run& run) {
  const auto item = std::int64_t(size_of(x.dtype));
  for_each_band(args, g, bands, x.shape[0], nullptr,
                [&](const WindowGeometry& part, std::int64_t in, std::int64_t out, void*) {
                  run(part, x.as<char>() + in * item, y.as<char>() + out * item, out);
                });
}

// Calls run as for_each_pooled() does, for bands of the result: a result reads its own window.
template <class Run>
void for_each_result(const KernelArgs& args, const View& x, const View& y, const Run& run) {
  const WindowGeometry g = geometry_of_pool(args.attrs, x.shape, y.shape);
  const std::int64_t bands = bands_per_image(args, x.shape[0]);
  for_each_pooled(args, x, y, g, ImageBands::of_result(g, bands), run);
}

void max_pool_kernel(const KernelArgs& args) {
  const auto pool = kernels().pool(args.in[0].dtype).max_pool;
  auto* const index = args.out[1].as<std::uint8_t>();
  for_each_result(args, args.in[0], args.out[0],
                  [&](auto& g, void* x, void* y, std::int64_t at) { pool(g, x, y, index + at); });
}

void max_pool_grad_kernel(const KernelArgs& args) {
  const View& dx = args.out[0];
  const View& dy = args.in[0];
  const auto spread = kernels().pool(dy.dtype).max_pool_grad;
  const auto* const index = args.in[1].as<std::uint8_t>();
  const WindowGeometry g = geometry_of_pool(args.attrs, dx.shape, dy.shape);
  // A band of a padded image may be tiled where the image is not: negative zeros would stay there.
  const bool alike = g.tiled_by_two() || !g.windows_by_two();
  const std::int64_t bands = alike ? bands_per_image(args, dx.shape[0]) : 1;
  for_each_pooled(
      args, dx, dy, g, ImageBands::of_images(g, bands),
      [&](auto& part, void* x, void* y, std::int64_t at) { spread(part, y, index + at, x); });
}

void avg_pool_kernel(const KernelArgs& args) {
  const auto pool = kernels().pool(args.in[0].dtype).avg_pool;
  for_each_result(args, args.in[0], args.out[0],
                  [&](auto& g, void* x, void* y, std::int64_t) { pool(g, x, y); });
}

// Images are whole: a window that a band cuts would be divided by the number of its pixels there.
void avg_pool_grad_kernel(const KernelArgs& args) {
  const View& dx = args.out[0];
  const View& dy = args.in[0];
  const auto spread = kernels().pool(dy.dtype).avg_pool_grad;
  const WindowGeometry g = geometry_of_pool(args.attrs, dx.shape, dy.shape);
  for_each_pooled(args, dx, dy, g, ImageBands::of_images(g, 1),
                  [&](auto& part, void* x, void* y, std::int64_t) { spread(part, y, x); });
}

template <class T>
void take(const WindowGeometry& g, const T* x, const std::uint8_t* index, T* y) {
  for (std::int64_t row = 0; row < g.out_height; ++row) {
    for (std::int64_t column = 0; column < g.out_width; ++column) {
      const std::int64_t top = row * g.stride_height - g.pad_top;
      const std::int64_t left = column * g.stride_width - g.pad_left;
      for (std::int64_t c = 0; c < g.out_channels; ++c, ++index) {
        const std::int64_t at = (top + *index / g.window_width * g.dilation_height) * g.in_width +
                                left + *index % g.window_width * g.dilation_width;
        *y++ = x[at * g.in_channels + c];
      }
    }
  }
}

void take_kernel(const KernelArgs& args) {
  const auto* const index = args.in[1].as<std::uint8_t>();
  visit<kFloats & kComputed>("max_pool2d_take", args.in[0].dtype, [&]<class T>() {
    for_each_result(args, args.in[0], args.out[0], [&](auto& g, void* x, void* y, std::int64_t at) {
      take(g, static_cast<const T*>(x), index + at, static_cast<T*>(y));
    });
  });
}

// ---- gradients ----

Values max_pool_vjp(const VjpArgs& v) {
  if (v.ct[0] == kNoValue) return {kNoValue};
  const Expr ct(v.b, v.ct[0]), index(v.b, v.out[1]), x(v.b, v.in[0]);
  return cotangents(call("max_pool2d_grad", ct, index, x, v.attrs));
}

Values max_pool_grad_vjp(const VjpArgs& v) {
  const Expr ct(v.b, v.ct[0]), index(v.b, v.in[1]);
  return cotangents(call("max_pool2d_take", ct, index, v.attrs), none(), none());
}

Values take_vjp(const VjpArgs& v) {
  const Expr ct(v.b, v.ct[0]), index(v.b, v.in[1]), x(v.b, v.in[0]);
  return cotangents(call("max_pool2d_grad", ct, index, x, v.attrs), none());
}

Values avg_pool_vjp(const VjpArgs& v) {
  const Expr ct(v.b, v.ct[0]), x(v.b, v.in[0]);
  return cotangents(call("avg_pool2d_grad", ct, x, v.attrs));
}

Values avg_pool_grad_vjp(const VjpArgs& v) {
  return cotangents(call("avg_pool2d", Expr(v.b, v.ct[0]), v.attrs), none());
}

// ---- rows of the table ----

Attrs window(Ints size, Ints strides, Ints padding) {
  return PoolAttrs{{std::move(strides), std::move(padding)}, std::move(size)};
}

std::vector<Sample> pool_samples() {
  return {
      {.shapes = {{2, 4, 5, 3}}, .attrs = window({2, 2}, {2, 2}, {0, 0, 0, 0})},
      {.shapes = {{5, 5, 4, 2}}, .attrs = window({3, 2}, {2, 1}, {1, 1, 0, 1}), .batched = {1}},
      {.shapes = {{6, 5, 7, 1}}, .attrs = window({2, 3}, {3, 2}, {0, 1, 0, 0}), .batched = {1}}};
}

OpDef pool_op(const char* name, const char* doc, std::vector<std::string> operands) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.min_arity = op.max_arity = int(operands.size());
  op.operands = std::move(operands);
  op.attrs = schema_of<PoolAttrs>();
  return op;
}

OpDef max_pool_op() {
  OpDef op = pool_op("max_pool2d",
                     "Largest element of each window (padding never wins) and, as uint8, its "
                     "place in the window: row * window columns + column, the first of equals.",
                     {"x"});
  op.infer = max_pool_rule;
  op.kernel = max_pool_kernel;
  op.vjp = max_pool_vjp;
  op.samples = pool_samples();
  return op;
}

OpDef max_pool_grad_op() {
  OpDef op = pool_op("max_pool2d_grad", "Adds each element to the place its window chose.",
                     {"ct", "index", "x_like"});
  op.traits = kBackward;
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.infer = max_pool_grad_rule;
  op.kernel = max_pool_grad_kernel;
  op.vjp = max_pool_grad_vjp;
  op.type_only = 1u << 2;
  const std::vector<DType> dtypes{DType::kFloat32, DType::kUInt8, DType::kFloat32};
  op.samples = {{.shapes = {{2, 2, 2, 3}, {2, 2, 2, 3}, {2, 4, 5, 3}},
                 .attrs = window({2, 2}, {2, 2}, {0, 0, 0, 0}),
                 .dtypes = dtypes,
                 .integer_high = 4},
                {.shapes = {{5, 2, 3, 2}, {5, 2, 3, 2}, {5, 5, 4, 2}},
                 .attrs = window({3, 2}, {2, 1}, {0, 0, 0, 0}),
                 .dtypes = dtypes,
                 .batched = {1, 1, 1},
                 .integer_high = 6}};
  return op;
}

OpDef take_op() {
  OpDef op = pool_op("max_pool2d_take", "The element of each window at the place that is given.",
                     {"x", "index"});
  op.traits = kBackward;
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.infer = take_rule;
  op.kernel = take_kernel;
  op.vjp = take_vjp;
  const std::vector<DType> dtypes{DType::kFloat32, DType::kUInt8};
  op.samples = {{.shapes = {{2, 4, 5, 3}, {2, 2, 2, 3}},
                 .attrs = window({2, 2}, {2, 2}, {0, 0, 0, 0}),
                 .dtypes = dtypes,
                 .integer_high = 4},
                {.shapes = {{5, 5, 4, 2}, {5, 2, 3, 2}},
                 .attrs = window({3, 2}, {2, 1}, {0, 0, 0, 0}),
                 .dtypes = dtypes,
                 .batched = {1, 1},
                 .integer_high = 6}};
  return op;
}

OpDef avg_pool_op() {
  OpDef op = pool_op("avg_pool2d", "Mean of each window; padding does not count.", {"x"});
  op.linearity = Linearity::kSum;
  op.infer = avg_pool_rule;
  op.kernel = avg_pool_kernel;
  op.vjp = avg_pool_vjp;
  op.samples = pool_samples();
  return op;
}

OpDef avg_pool_grad_op() {
  OpDef op =
      pool_op("avg_pool2d_grad", "Spreads each element evenly over its window.", {"ct", "x_like"});
  op.traits = kBackward;
  op.linearity = Linearity::kSum;
  op.infer = avg_pool_grad_rule;
  op.kernel = avg_pool_grad_kernel;
  op.vjp = avg_pool_grad_vjp;
  op.type_only = 1u << 1;
  op.samples = {
      {.shapes = {{2, 2, 2, 3}, {2, 4, 5, 3}}, .attrs = window({2, 2}, {2, 2}, {0, 0, 0, 0})},
      {.shapes = {{5, 3, 4, 2}, {5, 5, 4, 2}},
       .attrs = window({3, 2}, {2, 1}, {1, 1, 0, 1}),
       .batched = {1, 1}}};
  return op;
}

}  // namespace

std::vector<OpDef> pool_ops() {
  std::vector<OpDef> rows = {max_pool_op(), max_pool_grad_op(), take_op(), avg_pool_op(),
                             avg_pool_grad_op()};
  for (OpDef& row : rows) row.traits |= kKnownSizes;
  return rows;
}

}  // namespace samegrad
