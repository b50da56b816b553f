#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/conv.h"
#include "ops/tree_rows.h"
#include "ops/window.h"
#include "tensor/tree_accumulator.h"

namespace samegrad {
namespace {

// Of one image; x, filter and y are shapes of whole operands.
WindowGeometry geometry_of_conv(const Attrs& attrs, const Shape& x, const Shape& filter,
                                const Shape& y) {
  const int channels = x.rank() - 1;
  WindowGeometry g = geometry_of(attrs.as<WindowAttrs>(), x, y, filter);
  g.out_channels = filter[channels];
  if (filter[channels - 1] > 0) g.groups = x[channels] / filter[channels - 1];
  return g;
}

// For preparing, where sizes of images do not matter but their channels do.
WindowGeometry geometry_of_filter(const Attrs& attrs, const Shape& filter, std::int64_t channels) {
  Shape x = filter;
  x[filter.rank() - 1] = channels;
  return geometry_of_conv(attrs, x, filter, x);
}

WindowGeometry geometry_of_filter(const Attrs& attrs, std::span<const View> in,
                                  std::size_t images) {
  const Shape& filter = in[1].shape;
  return geometry_of_filter(attrs, filter, in[images].shape[filter.rank() - 1]);
}

WindowGeometry geometry_of_transpose(const Attrs& attrs, std::span<const View> in) {
  const Shape& filter = in[1].shape;
  const std::int64_t groups = attrs.as<ConvTransposeAttrs>().groups;
  return geometry_of_filter(attrs, filter, groups * filter[filter.rank() - 2]);
}

}  // namespace

std::size_t conv_packed_bytes(std::span<const View> in, const Attrs& attrs) {
  return kernels().product(in[1].dtype).conv2d_packed_bytes(geometry_of_filter(attrs, in, 0));
}

void conv_pack(std::span<const View> in, const Attrs& attrs, void* packed) {
  const WindowGeometry g = geometry_of_filter(attrs, in, 0);
  kernels().product(in[1].dtype).conv2d_pack(g, in[1].data, packed);
}

std::size_t conv_input_grad_packed_bytes(std::span<const View> in, const Attrs& attrs) {
  const WindowGeometry g = geometry_of_filter(attrs, in, 2);
  return kernels().product(in[1].dtype).conv2d_input_grad_packed_bytes(g);
}

void conv_input_grad_pack(std::span<const View> in, const Attrs& attrs, void* packed) {
  const WindowGeometry g = geometry_of_filter(attrs, in, 2);
  kernels().product(in[1].dtype).conv2d_input_grad_pack(g, in[1].data, packed);
}

std::size_t conv_transpose_packed_bytes(std::span<const View> in, const Attrs& attrs) {
  const WindowGeometry g = geometry_of_transpose(attrs, in);
  return kernels().product(in[1].dtype).conv2d_input_grad_packed_bytes(g);
}

void conv_transpose_pack(std::span<const View> in, const Attrs& attrs, void* packed) {
  const WindowGeometry g = geometry_of_transpose(attrs, in);
  kernels().product(in[1].dtype).conv2d_input_grad_pack(g, in[1].data, packed);
}

namespace {

using PackedBytes = std::size_t (*)(std::span<const View>, const Attrs&);
using Pack = void (*)(std::span<const View>, const Attrs&, void*);

// The operand as OpDef::prepare leaves it: made here if nobody has done so.
const void* prepared_filter(const KernelArgs& args, PackedBytes bytes, Pack pack) {
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
  const WindowGeometry g = geometry_of_conv(args.attrs, x.shape, args.in[1].shape, y.shape);
  const Scratch::Frame frame(args.scratch);
  const void* filter = prepared_filter(args, conv_packed_bytes, conv_pack);
  for_each_image(args, x.shape[0], product.conv2d_scratch_bytes(g),
                 [&](std::int64_t i, void* scratch) {
                   product.conv2d(g, x.as<char>() + i * g.in_size() * item, filter,
                                  y.as<char>() + i * g.out_size() * item, epilogue, scratch);
                 });
}

}  // namespace

void conv_kernel(const KernelArgs& args) {
  convolve(args, nullptr);
}

void conv_bias_kernel(const KernelArgs& args) {
  const Epilogue epilogue{args.in[2].data, args.attrs.as<ConvBiasAttrs>().activation};
  convolve(args, &epilogue);
}

namespace {

void spread(const KernelArgs& args, PackedBytes bytes, Pack pack) {
  const View& dy = args.in[0];
  const View& dx = args.out[0];
  const std::int64_t item = std::int64_t(size_of(dy.dtype));
  const ProductKernels& product = kernels().product(dy.dtype);
  const WindowGeometry g = geometry_of_conv(args.attrs, dx.shape, args.in[1].shape, dy.shape);
  const Scratch::Frame frame(args.scratch);
  const void* filter = prepared_filter(args, bytes, pack);
  for_each_image(args, dy.shape[0], product.conv2d_input_grad_scratch_bytes(g),
                 [&](std::int64_t i, void* scratch) {
                   product.conv2d_input_grad(g, dy.as<char>() + i * g.out_size() * item, filter,
                                             dx.as<char>() + i * g.in_size() * item, scratch);
                 });
}

}  // namespace

void conv_input_grad_kernel(const KernelArgs& args) {
  spread(args, conv_input_grad_packed_bytes, conv_input_grad_pack);
}

void conv_transpose_kernel(const KernelArgs& args) {
  spread(args, conv_transpose_packed_bytes, conv_transpose_pack);
}

namespace {

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
  const WindowGeometry g =
      geometry_of_conv(args.attrs, x.shape, args.out[0].shape, args.in[1].shape);
  const std::int64_t images = x.shape[0] / args.examples;
  const std::int64_t pixels = args.in[1].shape.size(1, x.shape.rank() - 1);
  const bool by_image = kLeafExamples * images * pixels > kContractionBlock;
  return new (args.scratch.take(sizeof(FilterGradient))) FilterGradient{
      kernels().product(x.dtype),     g,      x.as<const char>(), args.in[1].as<const char>(),
      std::int64_t(size_of(x.dtype)), images, by_image,           x.dtype};
}

// Images of one plane, as planes of one image that its windows do not join: the chains of its sums
// go on from plane to plane, so they stay in registers from image to image.
void add_images(const FilterGradient& images, const LeafArgs& args) {
  FilterGradient together = images;
  const std::int64_t first = args.begin * images.images_per_example;
  const std::int64_t count = (args.end - args.begin) * images.images_per_example;
  together.x += first * images.geometry.in_size() * images.item;
  together.dy += first * images.geometry.out_size() * images.item;
  together.geometry.in_depth = together.geometry.out_depth = count;
  const std::size_t bytes = together.product.conv2d_filter_grad_scratch_bytes(together.geometry);
  const Scratch::Frame frame(args.scratch);
  together.add_image(0, args.state.data[0], !args.first, args.scratch.take(bytes));
}

bool are_planes(const WindowGeometry& g) {
  return g.in_depth == 1 && g.out_depth == 1 && g.window_depth == 1;
}

void filter_grad_leaf(const LeafArgs& args) {
  const FilterGradient& gradient = *static_cast<const FilterGradient*>(args.operands);
  if (!gradient.by_image && are_planes(gradient.geometry)) return add_images(gradient, args);
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

}  // namespace

TreeKernel conv_filter_tree() {
  return kFilterTree;
}

// Images that are no examples: the same sum, each image for an example.
void conv_filter_grad_kernel(const KernelArgs& args) {
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

}  // namespace samegrad
