// Convolution of images and its two gradients, which are each other's gradients.
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/families.h"
#include "ops/tree_rows.h"
#include "ops/window.h"
#include "tensor/tree_accumulator.h"

namespace samegrad {
namespace {

// ---- shapes ----

void check_filter(const InferArgs& args, int operand, const Shape& x) {
  const ValueType& filter = args.in[std::size_t(operand)];
  check_value(filter.shape.rank() == 4 && !filter.batched(), args.op.name,
              "'filter' must have the axes (rows, columns, channels in, channels out) and no "
              "examples: got shape ",
              args.shape_of(operand), ".");
  check_value(filter.shape[2] == x[3], args.op.name,
              "the filter's channels must be the image's: ", "got ", filter.shape[2], " and ", x[3],
              " (shapes ", args.shape_of(operand), " and ", args.shape_of(0), ").");
}

// What conv2d makes of images and a filter.
ValueType convolved(const InferArgs& args, const ValueType& x, int filter) {
  check_window_attrs(args);
  check_filter(args, filter, x.shape);
  const Shape& f = args.in[std::size_t(filter)].shape;
  const OutputSize size = output_size(args, x.shape, f[0], f[1]);
  ValueType y = x;
  y.shape = Shape({x.shape[0], size.height, size.width, f[3]});
  return y;
}

Inferred conv2d_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_same_dtype(args, 0, int(args.in.size()));
  check_images(args, 0);
  return one_result(args, convolved(args, args.in[0], 1));
}

void check_result(const InferArgs& args, const ValueType& x, int dy, int filter) {
  check_dtype(args, 0, kFloats);
  check_same_dtype(args, 0, 3);
  check_images(args, dy);
  const ValueType y = convolved(args, x, filter);
  const ValueType& given = args.in[std::size_t(dy)];
  check_value(same_shape(args, y, given), args.op.name,
              "'dy' must have the shape of the convolution's result: got ", args.shape_of(dy),
              " where images are of ", to_string(x.shape), ".");
}

Inferred input_grad_rule(const InferArgs& args) {
  check_images(args, 2);
  check_result(args, args.in[2], 0, 1);
  const bool aligned = args.in[0].batch == args.in[2].batch;
  return {{args.in[2]}, aligned ? one_result(args, args.in[2]).locality : Locality::kWhole};
}

Inferred filter_grad_rule(const InferArgs& args) {
  check_images(args, 0);
  check_result(args, args.in[0], 1, 2);
  const bool tree = args.in[0].batched() && args.in[0].batch == args.in[1].batch;
  return {{args.in[2]}, tree ? Locality::kTree : Locality::kWhole};
}

// ---- kernels ----

WindowGeometry geometry_of_conv(const Attrs& attrs, const View& x, const View& filter,
                                const Shape& y) {
  return geometry_of(attrs.as<WindowAttrs>(), x.shape, y, filter.shape[0], filter.shape[1]);
}

// For preparing, where the result's rows and columns do not matter.
WindowGeometry geometry_of_filter(const Attrs& attrs, const View& x, const View& filter) {
  return geometry_of_conv(attrs, x, filter, Shape({0, 0, 0, filter.shape[3]}));
}

std::size_t conv2d_packed_bytes(std::span<const View> in, const Attrs&) {
  const Shape& f = in[1].shape;
  return kernels().product(in[1].dtype).packed_bytes(f.size(0, 3), f[3]);
}

void conv2d_pack(std::span<const View> in, const Attrs&, void* packed) {
  const Shape& f = in[1].shape;
  kernels().product(in[1].dtype).pack(in[1].data, f.size(0, 3), f[3], f[3], false, packed);
}

std::size_t input_grad_packed_bytes(std::span<const View> in, const Attrs& attrs) {
  return kernels()
      .product(in[1].dtype)
      .conv2d_input_grad_packed_bytes(geometry_of_filter(attrs, in[2], in[1]));
}

void input_grad_pack(std::span<const View> in, const Attrs& attrs, void* packed) {
  kernels()
      .product(in[1].dtype)
      .conv2d_input_grad_pack(geometry_of_filter(attrs, in[2], in[1]), in[1].data, packed);
}

// The operand as OpDef::prepare leaves it: made here if nobody has done so.
const void* prepared_filter(const KernelArgs& args,
                            std::size_t (*bytes)(std::span<const View>, const Attrs&),
                            void (*pack)(std::span<const View>, const Attrs&, void*)) {
  if (args.prepared) return args.prepared;
  void* packed = args.scratch.take(bytes(args.in, args.attrs));
  pack(args.in, args.attrs, packed);
  return packed;
}

void convolve(const KernelArgs& args, const Epilogue* epilogue) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  const std::int64_t item = std::int64_t(size_of(x.dtype));
  const ProductKernels& product = kernels().product(x.dtype);
  const WindowGeometry g = geometry_of_conv(args.attrs, x, args.in[1], y.shape);
  const Scratch::Frame frame(args.scratch);
  const void* filter = prepared_filter(args, conv2d_packed_bytes, conv2d_pack);
  for_each_image(args, x.shape[0], product.conv2d_scratch_bytes(g),
                 [&](std::int64_t i, void* scratch) {
                   product.conv2d(g, x.as<char>() + i * g.in_size() * item, filter,
                                  y.as<char>() + i * g.out_size() * item, epilogue, scratch);
                 });
}

void conv2d_kernel(const KernelArgs& args) {
  convolve(args, nullptr);
}

void conv2d_bias_kernel(const KernelArgs& args) {
  const Epilogue epilogue{args.in[2].data, args.attrs.as<ConvBiasAttrs>().activation};
  convolve(args, &epilogue);
}

void input_grad_kernel(const KernelArgs& args) {
  const View& dy = args.in[0];
  const View& dx = args.out[0];
  const std::int64_t item = std::int64_t(size_of(dy.dtype));
  const ProductKernels& product = kernels().product(dy.dtype);
  const WindowGeometry g = geometry_of_conv(args.attrs, dx, args.in[1], dy.shape);
  const Scratch::Frame frame(args.scratch);
  const void* filter = prepared_filter(args, input_grad_packed_bytes, input_grad_pack);
  for_each_image(args, dy.shape[0], product.conv2d_input_grad_scratch_bytes(g),
                 [&](std::int64_t i, void* scratch) {
                   product.conv2d_input_grad(g, dy.as<char>() + i * g.out_size() * item, filter,
                                             dx.as<char>() + i * g.in_size() * item, scratch);
                 });
}

// Images and the cotangents of their results, ready for leaves.
struct FilterGradient {
  const ProductKernels& product;
  WindowGeometry geometry;
  const char* x;
  const char* dy;
  std::int64_t item;
  std::int64_t images_per_example;
  bool by_image;  // a leaf is too long for one chain over its pixels
  DType dtype;

  void add_image(std::int64_t i, void* sum, bool accumulate, void* scratch) const {
    product.conv2d_filter_grad(geometry, x + i * geometry.in_size() * item,
                               dy + i * geometry.out_size() * item, sum, accumulate, scratch);
  }
};

StateShape filter_state(std::span<const View>, const Attrs&, const View& result) {
  return state_of_result(result);
}

// A leaf is one chain over the pixels of its images unless that gets too long: then each image has
// its own.
const void* open_filter_grad(const KernelArgs& args) {
  const View& x = args.in[0];
  const WindowGeometry g = geometry_of_conv(args.attrs, x, args.out[0], args.in[1].shape);
  const std::int64_t images = x.shape[0] / args.examples;
  const std::int64_t pixels = args.in[1].shape.size(1, 3);
  const bool by_image = kLeafExamples * images * pixels > kContractionBlock;
  return new (args.scratch.take(sizeof(FilterGradient))) FilterGradient{
      kernels().product(x.dtype),     g,      x.as<const char>(), args.in[1].as<const char>(),
      std::int64_t(size_of(x.dtype)), images, by_image,           x.dtype};
}

void filter_grad_leaf(const LeafArgs& args) {
  const FilterGradient& gradient = *static_cast<const FilterGradient*>(args.operands);
  const Scratch::Frame frame(args.scratch);
  const std::size_t bytes = gradient.product.conv2d_filter_grad_scratch_bytes(gradient.geometry);
  void* scratch = args.scratch.take(bytes);
  std::byte* sum = args.state.data[0];
  std::byte* own = sum;
  if (gradient.by_image) {
    const std::int64_t elements = args.block.size() * gradient.item;
    own = static_cast<std::byte*>(args.scratch.take(std::size_t(elements)));
  }
  bool first = args.first;
  const std::int64_t end = args.end * gradient.images_per_example;
  for (std::int64_t i = args.begin * gradient.images_per_example; i < end; ++i, first = false) {
    if (first || !gradient.by_image) {
      gradient.add_image(i, sum, !first, scratch);
      continue;
    }
    gradient.add_image(i, own, false, scratch);
    join_elements(BinaryFn::k_add, gradient.dtype, args.block, args.state,
                  {{own}, args.block.columns});
  }
}

constexpr TreeKernel kFilterTree{.state = filter_state,
                                 .open = open_filter_grad,
                                 .leaf = filter_grad_leaf,
                                 .combine = combine_elements<BinaryFn::k_add>,
                                 .neutral = neutral_zeros};

// Images that are no examples: the same sum, each image for an example.
void filter_grad_kernel(const KernelArgs& args) {
  const View& sum = args.out[0];
  if (sum.size() == 0) return;
  const std::int64_t images = args.in[0].shape[0];
  const Scratch::Frame frame(args.scratch);
  const TreeReduction reduction(kFilterTree, args.attrs, args.in, sum);
  const Extent& whole = reduction.whole;
  auto* partials = static_cast<std::byte*>(
      args.scratch.take(std::size_t(TreeAccumulator::partial_bytes(reduction, whole, images))));
  TreeAccumulator accumulator(reduction, whole, 0, images, whole.at(sum.as<std::byte>()), partials);
  if (images == 0) return;
  const void* operands = open_filter_grad({.attrs = args.attrs,
                                           .in = args.in,
                                           .out = args.out,
                                           .examples = images,
                                           .facts = args.facts,
                                           .scratch = args.scratch});
  accumulator.feed(operands, 0, 0, images, args.scratch);
}

// ---- gradients ----

Expr conv2d(Expr x, Expr filter, const Attrs& attrs) {
  return call("conv2d", x, filter, attrs);
}
Expr input_grad(Expr dy, Expr filter, Expr x, const Attrs& attrs) {
  return call("conv2d_input_grad", dy, filter, x, attrs);
}
Expr filter_grad(Expr x, Expr dy, Expr filter, const Attrs& attrs) {
  return call("conv2d_filter_grad", x, dy, filter, attrs);
}

Values conv2d_vjp(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]), filter(v.b, v.in[1]), ct(v.b, v.ct[0]);
  return cotangents(input_grad(ct, filter, x, v.attrs), filter_grad(x, ct, filter, v.attrs));
}

Values input_grad_vjp(const VjpArgs& v) {
  const Expr dy(v.b, v.in[0]), filter(v.b, v.in[1]), ct(v.b, v.ct[0]);
  return cotangents(conv2d(ct, filter, v.attrs), filter_grad(ct, dy, filter, v.attrs), none());
}

Values filter_grad_vjp(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]), dy(v.b, v.in[1]), ct(v.b, v.ct[0]);
  return cotangents(input_grad(dy, ct, x, v.attrs), conv2d(x, ct, v.attrs), none());
}

// ---- rows of the table ----

OpDef conv2d_row() {
  OpDef op;
  op.name = "conv2d";
  op.doc =
      "Convolution of images (n, rows, columns, channels) with a filter (rows, columns, in, out): "
      "each element is one chain over the filter's rows, columns and channels.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "filter"};
  op.scaling = Scaling::kProduct;
  op.attrs = schema_of<WindowAttrs>();
  op.infer = conv2d_rule;
  op.kernel = conv2d_kernel;
  op.vjp = conv2d_vjp;
  op.with_bias = "conv2d_bias";
  op.prepared_operand = 1;
  op.prepared_bytes = conv2d_packed_bytes;
  op.prepare = conv2d_pack;
  op.samples = {
      {.shapes = {{2, 4, 5, 2}, {3, 2, 2, 3}}, .attrs = WindowAttrs{{1, 1}, {0, 0, 0, 0}}},
      {.shapes = {{5, 5, 4, 2}, {3, 3, 2, 3}},
       .attrs = WindowAttrs{{2, 1}, {1, 1, 0, 1}},
       .batched = {1, 0}},
      {.shapes = {{6, 5, 5, 1}, {2, 2, 1, 5}},
       .attrs = WindowAttrs{{2, 3}, {0, 0, 0, 0}},
       .batched = {1, 0}}};
  return op;
}

OpDef input_grad_row() {
  OpDef op;
  op.name = "conv2d_input_grad";
  op.doc = "Gradient of conv2d with respect to the images.";
  op.min_arity = op.max_arity = 3;
  op.operands = {"dy", "filter", "x_like"};
  op.scaling = Scaling::kProduct;
  op.attrs = schema_of<WindowAttrs>();
  op.traits = kBackward;
  op.infer = input_grad_rule;
  op.kernel = input_grad_kernel;
  op.vjp = input_grad_vjp;
  op.type_only = 1u << 2;
  op.prepared_operand = 1;
  op.prepared_bytes = input_grad_packed_bytes;
  op.prepare = input_grad_pack;
  op.samples = {{.shapes = {{2, 2, 4, 3}, {3, 2, 2, 3}, {2, 4, 5, 2}},
                 .attrs = WindowAttrs{{1, 1}, {0, 0, 0, 0}}},
                {.shapes = {{5, 3, 3, 3}, {3, 3, 2, 3}, {5, 5, 4, 2}},
                 .attrs = WindowAttrs{{2, 1}, {1, 1, 0, 1}},
                 .batched = {1, 0, 1}}};
  return op;
}

OpDef filter_grad_row() {
  OpDef op;
  op.name = "conv2d_filter_grad";
  op.doc = "Gradient of conv2d with respect to the filter: over examples the fixed tree.";
  op.min_arity = op.max_arity = 3;
  op.operands = {"x", "dy", "filter_like"};
  op.scaling = Scaling::kProduct;
  op.attrs = schema_of<WindowAttrs>();
  op.traits = kBackward;
  op.infer = filter_grad_rule;
  op.kernel = filter_grad_kernel;
  op.tree = kFilterTree;
  op.vjp = filter_grad_vjp;
  op.type_only = 1u << 2;
  op.samples = {{.shapes = {{2, 4, 5, 2}, {2, 2, 4, 3}, {3, 2, 2, 3}},
                 .attrs = WindowAttrs{{1, 1}, {0, 0, 0, 0}}},
                {.shapes = {{9, 5, 4, 2}, {9, 3, 3, 3}, {3, 3, 2, 3}},
                 .attrs = WindowAttrs{{2, 1}, {1, 1, 0, 1}},
                 .batched = {1, 1, 0}}};
  return op;
}

Inferred conv2d_bias_rule(const InferArgs& args) {
  const Inferred inferred = conv2d_rule(args);
  check_value(!args.in[2].batched() && args.in[2].shape == Shape({args.in[1].shape[3]}),
              args.op.name, "'bias' must have one element per channel of the filter: got ",
              args.shape_of(2), " for a filter of ", args.shape_of(1), ".");
  return inferred;
}

Values conv2d_bias_parts(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]), filter(v.b, v.in[1]), bias(v.b, v.in[2]);
  const auto& attrs = v.attrs.as<ConvBiasAttrs>();
  const Expr y = conv2d(x, filter, WindowAttrs(attrs)) + bias;
  return cotangents(attrs.activation == Activation::kRelu ? relu(y) : y);
}

OpDef conv2d_bias_row() {
  OpDef op = conv2d_row();
  op.name = "conv2d_bias";
  op.scaling = Scaling::kNone;
  op.with_bias.clear();
  op.doc = "activation(conv2d(x, filter) + bias) in one pass, with the bits of the separate steps.";
  op.min_arity = op.max_arity = 3;
  op.operands.push_back("bias");
  op.attrs = schema_of<ConvBiasAttrs>();
  op.infer = conv2d_bias_rule;
  op.kernel = conv2d_bias_kernel;
  op.vjp = nullptr;
  op.decompose = conv2d_bias_parts;
  Activation activation = Activation::kNone;
  for (Sample& sample : op.samples) {
    sample.shapes.push_back({sample.shapes[1][3]});
    if (!sample.batched.empty()) sample.batched.push_back(0);
    sample.attrs = ConvBiasAttrs{sample.attrs.as<WindowAttrs>(), activation};
    activation = Activation::kRelu;
  }
  return op;
}

}  // namespace

std::vector<OpDef> conv_ops() {
  return {conv2d_row(), input_grad_row(), filter_grad_row(), conv2d_bias_row()};
}

}  // namespace samegrad
