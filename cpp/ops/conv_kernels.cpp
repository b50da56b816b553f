#include <algorithm>
#include <limits>

#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/conv.h"
#include "ops/image_bands.h"
#include "ops/tree_reduction.h"
#include "ops/window.h"
#include "tensor/tree_accumulator.h"

namespace samegrad {
namespace {

// The geometry of one image; x, filter and y are the shapes of whole operands.
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

std::size_t conv_packed_bytes(std::span<const View> in, const Attrs& attrs) {
  return kernels().product(in[1].dtype).conv2d_packed_bytes(geometry_of_filter(attrs, in, 0));
}

std::int64_t conv_packed_columns(std::span<const View> in, const Attrs& attrs) {
  return geometry_of_filter(attrs, in, 0).group_out();
}

void conv_pack(std::span<const View> in, const Attrs& attrs, std::int64_t begin, std::int64_t end,
               void* packed) {
  const WindowGeometry g = geometry_of_filter(attrs, in, 0);
  kernels()
      .product(in[1].dtype)
      .conv2d_pack(g, in[1].data, begin, std::min(end, g.group_out()), packed);
}

std::size_t conv_input_grad_packed_bytes(std::span<const View> in, const Attrs& attrs) {
  const WindowGeometry g = geometry_of_filter(attrs, in, 2);
  return kernels().product(in[1].dtype).conv2d_input_grad_packed_bytes(g);
}

std::int64_t conv_input_grad_packed_columns(std::span<const View> in, const Attrs& attrs) {
  return geometry_of_filter(attrs, in, 2).group_in();
}

void conv_input_grad_pack(std::span<const View> in, const Attrs& attrs, std::int64_t begin,
                          std::int64_t end, void* packed) {
  const WindowGeometry g = geometry_of_filter(attrs, in, 2);
  kernels()
      .product(in[1].dtype)
      .conv2d_input_grad_pack(g, in[1].data, begin, std::min(end, g.group_in()), packed);
}

std::size_t conv_transpose_packed_bytes(std::span<const View> in, const Attrs& attrs) {
  const WindowGeometry g = geometry_of_transpose(attrs, in);
  return kernels().product(in[1].dtype).conv2d_input_grad_packed_bytes(g);
}

std::int64_t conv_transpose_packed_columns(std::span<const View> in, const Attrs& attrs) {
  return geometry_of_transpose(attrs, in).group_in();
}

void conv_transpose_pack(std::span<const View> in, const Attrs& attrs, std::int64_t begin,
                         std::int64_t end, void* packed) {
  const WindowGeometry g = geometry_of_transpose(attrs, in);
  kernels()
      .product(in[1].dtype)
      .conv2d_input_grad_pack(g, in[1].data, begin, std::min(end, g.group_in()), packed);
}

}  // namespace

Prepacking conv_prepacking() {
  return {1, conv_packed_bytes, conv_packed_columns, conv_pack};
}
Prepacking conv_input_grad_prepacking() {
  return {1, conv_input_grad_packed_bytes, conv_input_grad_packed_columns, conv_input_grad_pack};
}
Prepacking conv_transpose_prepacking() {
  return {1, conv_transpose_packed_bytes, conv_transpose_packed_columns, conv_transpose_pack};
}

namespace {

// The operand that OpDef::prepacking packs, packed here if the call has none.
const void* prepacked_filter(const KernelArgs& args, const Prepacking& prepacking) {
  if (args.prepacked) return args.prepacked;
  void* packed = args.scratch.take(prepacking.bytes(args.in, args.attrs));
  prepacking.run(args.in, args.attrs, 0, std::numeric_limits<std::int64_t>::max(), packed);
  return packed;
}

void convolve(const KernelArgs& args, const Epilogue* epilogue) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  const std::int64_t item = std::int64_t(size_of(x.dtype));
  const ProductKernels& product = kernels().product(x.dtype);
  const WindowGeometry g = geometry_of_conv(args.attrs, x.shape, args.in[1].shape, y.shape);
  const Scratch::Frame frame(args.scratch);
  const void* filter = prepacked_filter(args, conv_prepacking());
  const ImageBands bands = ImageBands::of_result(g, bands_per_image(args, x.shape[0]));
  for_each_band(args, g, bands, x.shape[0], product.conv2d_scratch_bytes,
                [&](const WindowGeometry& part, std::int64_t in, std::int64_t out, void* scratch) {
                  product.conv2d(part, x.as<char>() + in * item, filter, y.as<char>() + out * item,
                                 epilogue, scratch);
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

void spread(const KernelArgs& args, const Prepacking& prepacking) {
  const View& dy = args.in[0];
  const View& dx = args.out[0];
  const std::int64_t item = std::int64_t(size_of(dy.dtype));
  const ProductKernels& product = kernels().product(dy.dtype);
  const WindowGeometry g = geometry_of_conv(args.attrs, dx.shape, args.in[1].shape, dy.shape);
  const Scratch::Frame frame(args.scratch);
  const void* filter = prepacked_filter(args, prepacking);
  const ImageBands bands = ImageBands::of_images(g, bands_per_image(args, dy.shape[0]));
  for_each_band(args, g, bands, dy.shape[0], product.conv2d_input_grad_scratch_bytes,
                [&](const WindowGeometry& part, std::int64_t in, std::int64_t out, void* scratch) {
                  product.conv2d_input_grad(part, dy.as<char>() + out * item, filter,
                                            dx.as<char>() + in * item, scratch);
                });
}

}  // namespace

void conv_input_grad_kernel(const KernelArgs& args) {
  spread(args, conv_input_grad_prepacking());
}

void conv_transpose_kernel(const KernelArgs& args) {
  spread(args, conv_transpose_prepacking());
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

  // Multiplies the images from `image` on.
  void multiply(const WindowGeometry& g, std::int64_t image, const FilterBlock& block, void* sum,
                bool accumulate, Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    void* memory = scratch.take(product.conv2d_filter_grad_scratch_bytes(g, block));
    product.conv2d_filter_grad(g, x + image * geometry.in_size() * item,
                               dy + image * geometry.out_size() * item, block, sum, accumulate,
                               memory);
  }
};

bool is_long(const WindowGeometry& g, std::int64_t images_per_example) {
  return !leaf_is_one_chain(images_per_example * g.out_pixels());
}

FilterBlock part_of_filter(const Rect& block, std::int64_t stride) {
  return {block.row, block.column, block.rows, block.columns, stride};
}

// Rows are taps and channels in, columns are channels out: each element is a chain of its own.
// Single channels are the lanes of registers, all of them.
AccumulatorShape filter_state(std::span<const View> in, const Attrs& attrs, const View& result) {
  const WindowGeometry g = geometry_of_conv(attrs, in[0].shape, result.shape, in[1].shape);
  AccumulatorShape state = state_of_result(result);
  state.rows = g.patch_size();
  state.columns = g.out_channels;
  state.row_grain = kProductRowGrain;
  state.column_grain = g.groups == 1 ? kProductColumnGrain : g.group_in() > 1 ? g.group_out() : 0;
  state.block_bytes = thresholds().product_block_bytes;
  state.block_columns = thresholds().product_block_columns;
  state.subtrees = kernels().product(result.dtype).conv2d_filter_tree != nullptr &&
                   !is_long(g, in[0].rows_per_example);
  return state;
}

// A leaf is one chain over the pixels of its images unless that gets too long: then each image has
// its own.
const void* open_filter_grad(const KernelArgs& args) {
  const View& x = args.in[0];
  const WindowGeometry g =
      geometry_of_conv(args.attrs, x.shape, args.out[0].shape, args.in[1].shape);
  const std::int64_t images = x.shape[0] / args.examples;
  return new (args.scratch.take(sizeof(FilterGradient))) FilterGradient{
      kernels().product(x.dtype),     g,      x.as<const char>(), args.in[1].as<const char>(),
      std::int64_t(size_of(x.dtype)), images, is_long(g, images), x.dtype};
}

bool are_planes(const WindowGeometry& g) {
  return g.in_depth == 1 && g.out_depth == 1 && g.window_depth == 1;
}

// Images of one plane, as planes of one image that its windows do not join: the chains of its sums
// go on from plane to plane, so they stay in registers from image to image.
WindowGeometry as_planes(WindowGeometry g, std::int64_t images) {
  g.in_depth = g.out_depth = images;
  return g;
}

void filter_grad_leaf(const LeafArgs& args) {
  const FilterGradient& gradient = *static_cast<const FilterGradient*>(args.operands);
  const WindowGeometry& g = gradient.geometry;
  const std::int64_t begin = args.begin * gradient.images_per_example;
  const std::int64_t end = args.end * gradient.images_per_example;
  const FilterBlock block = part_of_filter(args.block, args.state.stride);
  std::byte* sum = args.state.data[0];
  if (!gradient.by_image && are_planes(g)) {
    const WindowGeometry images = as_planes(g, end - begin);
    return gradient.multiply(images, begin, block, sum, !args.first, args.scratch);
  }
  bool first = args.first;
  for (std::int64_t i = begin; i < end; ++i, first = false) {
    if (first || !gradient.by_image) {
      gradient.multiply(g, i, block, sum, !first, args.scratch);
      continue;
    }
    const Scratch::Frame frame(args.scratch);
    const std::int64_t bytes = args.block.size() * gradient.item;
    auto* own = static_cast<std::byte*>(args.scratch.take(std::size_t(bytes)));
    const Accumulator right{{own}, args.block.columns};
    gradient.multiply(g, i, part_of_filter(args.block, right.stride), own, false, args.scratch);
    join_elements(BinaryFn::k_add, gradient.dtype, args.block, args.state, right);
  }
}

// The examples whose pixels stay in cache.
std::int64_t most_examples(const WindowGeometry& g, std::int64_t images_per_example) {
  const std::int64_t pixels = std::max<std::int64_t>(1, images_per_example * g.out_pixels());
  return std::max<std::int64_t>(1, thresholds().product_subtree_rows / pixels);
}

// Leaves and joins of a subtree of few enough examples for their pixels to stay in cache.
void filter_grad_small_subtree(const LeafArgs& args) {
  const FilterGradient& gradient = *static_cast<const FilterGradient*>(args.operands);
  const std::int64_t examples = args.end - args.begin;
  if (examples <= kLeafExamples) return filter_grad_leaf(args);
  const std::int64_t images = gradient.images_per_example;
  const WindowGeometry& g = gradient.geometry;
  const FilterBlock block = part_of_filter(args.block, args.state.stride);
  const std::int64_t first = args.begin * images;
  const Scratch::Frame frame(args.scratch);
  void* scratch = args.scratch.take(
      gradient.product.conv2d_filter_tree_scratch_bytes(g, examples, images, block));
  gradient.product.conv2d_filter_tree(g, gradient.x + first * g.in_size() * gradient.item,
                                      gradient.dy + first * g.out_size() * gradient.item, examples,
                                      images, block, args.state.data[0], scratch);
}

void filter_grad_subtree(const LeafArgs& args) {
  const FilterGradient& gradient = *static_cast<const FilterGradient*>(args.operands);
  const std::int64_t most = most_examples(gradient.geometry, gradient.images_per_example);
  fold_subtrees(args, most, args.block, args.state, gradient.dtype,
                [&](TreeRange of, const Accumulator& state) {
                  filter_grad_small_subtree(
                      {args.operands, of.begin, of.end, args.block, state, true, args.scratch});
                });
}

// The packed pixels of a leaf or of a subtree, and a block of the state on each level above them.
std::size_t filter_fold_bytes(const FoldArgs& args) {
  const ProductKernels& product = kernels().product(args.result.dtype);
  const WindowGeometry g =
      geometry_of_conv(args.attrs, args.in[0].shape, args.result.shape, args.in[1].shape);
  const std::int64_t images = args.in[0].rows_per_example;
  const FilterBlock block = part_of_filter(args.block, args.block.columns);
  const bool together = !is_long(g, images) && are_planes(g);
  const WindowGeometry leaf = together ? as_planes(g, kLeafExamples * images) : g;
  std::size_t bytes = product.conv2d_filter_grad_scratch_bytes(leaf, block);
  if (!is_long(g, images)) {
    const std::int64_t examples = most_examples(g, images);
    bytes = std::max(bytes, product.conv2d_filter_tree_scratch_bytes(g, examples, images, block));
  }
  const std::size_t state =
      std::size_t(args.block.size()) * size_of(args.result.dtype) + kAlignment;
  return bytes + kAlignment + std::size_t(kReplicaTree.levels(args.examples) + 1) * state;
}

constexpr TreeKernel kFilterTree{.state = filter_state,
                                 .open = open_filter_grad,
                                 .leaf = filter_grad_leaf,
                                 .combine = combine_elements<BinaryFn::k_add>,
                                 .neutral = neutral_zeros,
                                 .subtree = filter_grad_subtree,
                                 .fold_bytes = filter_fold_bytes};

}  // namespace

TreeKernel conv_filter_tree() {
  return kFilterTree;
}

// Images that are not examples: the same sum, each image for an example.
void conv_filter_grad_kernel(const KernelArgs& args) {
  const View& sum = args.out[0];
  if (sum.size() == 0) return;
  const std::int64_t images = args.in[0].shape[0];
  const Scratch::Frame frame(args.scratch);
  const TreeReduction reduction(kFilterTree, args.attrs, args.in, sum);
  const KernelArgs all{.attrs = args.attrs,
                       .in = args.in,
                       .out = args.out,
                       .examples = images,
                       .replica_context = args.replica_context,
                       .scratch = args.scratch};
  const void* operands = images > 0 ? open_filter_grad(all) : nullptr;
  const ParallelFor* parallel = args.parallel;
  const TileSet blocks =
      reduction.blocks(parallel ? thresholds().parts_per_thread * parallel->threads() : 1);
  const auto fold_block = [&](std::int64_t i, Scratch& scratch) {
    const Scratch::Frame own(scratch);
    const Rect block = blocks.cut(i);
    const TileSet extent(reduction.state, block);
    const std::int64_t bytes = TreeAccumulator::partial_bytes(reduction, extent, images);
    auto* partials = static_cast<std::byte*>(scratch.take(std::size_t(bytes)));
    const Accumulator state = reduction.whole.part(reduction.whole.at(sum.as<std::byte>()), block);
    TreeAccumulator accumulator(reduction, extent, 0, images, state, partials);
    accumulator.feed(operands, 0, 0, images, scratch);
  };
  if (!parallel) {
    for (std::int64_t i = 0; i < blocks.cuts(); ++i) fold_block(i, args.scratch);
    return;
  }
  parallel->run(blocks.cuts(), [&](std::int64_t i) {
    Scratch scratch;
    fold_block(i, scratch);
  });
}

}  // namespace samegrad
