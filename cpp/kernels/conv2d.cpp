#include <algorithm>

#include "kernels/conv_depthwise.h"
#include "kernels/conv_lines.h"
#include "kernels/gemm_functions.h"
#include "kernels/gemm_k_blocks.h"
#include "kernels/gemm_pack.h"
#include "kernels/window_taps.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// Per group, rows (depth, row, column, in) by columns (out); by channel, as the filter is.
template <class T>
std::size_t conv2d_packed_bytes(const WindowGeometry& g) {
  if (forward_by_channel<T>(g)) return channel_bytes<T>(g.taps(), g.out_channels);
  return static_cast<std::size_t>(g.groups) * packed_size_bytes<T>(g.patch_size(), g.group_out());
}

template <class T>
void conv2d_pack(const WindowGeometry& g, const void* filter, std::int64_t begin, std::int64_t end,
                 void* packed) {
  const auto* from = static_cast<const T*>(filter);
  auto* to = static_cast<T*>(packed);
  const std::int64_t k = g.patch_size(), n = g.group_out();
  if (forward_by_channel<T>(g)) {
    if (begin == 0) std::copy_n(from, k * g.out_channels, to);
    return;
  }
  const std::int64_t size = k * packed_columns<T>(n);
  for (std::int64_t i = 0; i < g.groups; ++i) {
    pack_rows(from + i * n + begin, k, end - begin, g.out_channels, false, 0, k,
              to + i * size + begin * k);
  }
}

namespace {

std::int64_t in_pixels(const WindowGeometry& g) {
  return g.in_depth * g.in_height * g.in_width;
}
// Results next to each other see pixels next to each other.
bool by_line(const WindowGeometry& g) {
  return g.stride_width == 1 && pays_by_line(g, g.group_out(), g.group_in());
}

}  // namespace

template <class T>
std::size_t conv2d_scratch_bytes(const WindowGeometry& g) {
  if (forward_by_channel<T>(g)) return widened_bytes<T>(g);
  return by_line(g) ? planes_bytes<T>(g.group_in(), in_pixels(g)) : 0;
}

namespace {

// One plane of the input and of the result, both at the first channel of a group.
template <class T>
struct Planes {
  const T* x;
  std::int64_t pixel;     // from pixel to pixel of x
  std::int64_t channels;  // of a tap: the columns of a patch that belong to it
  T* y;
  bool by_line = false;      // x has a plane per channel
  std::int64_t channel = 1;  // from channel to channel
};

// No patch matrix: a patch is window_height pieces of the image (of one tap each where taps are
// apart or pixels hold other groups too), read where they are. The filter's plane starts at
// `first_row` of the product's right operand.
template <class T>
void convolve_plane(const WindowGeometry& g, const Planes<T>& p, std::int64_t first_row,
                    Gemm<T> product) {
  const WindowAxis vertical = vertical_axis(g), horizontal = horizontal_axis(g);
  const bool whole_rows = g.dilation_width == 1 && p.channels == p.pixel;
  RowBatch<T> group(product);
  for_output_runs(vertical, [&](TapRange rows, TapRange row_taps) {
    for_output_runs(horizontal, [&](TapRange columns, TapRange column_taps) {
      product.walk = {.outer = row_taps.count,
                      .inner = whole_rows ? 1 : column_taps.count,
                      .length = whole_rows ? column_taps.count * p.channels : p.channels,
                      .a_outer = g.dilation_height * g.in_width * p.pixel,
                      .b_outer = g.window_width * p.channels,
                      .a_inner = g.dilation_width * p.pixel,
                      .b_inner = p.channels};
      product.b_first_row =
          first_row + (row_taps.first * g.window_width + column_taps.first) * p.channels;
      for (std::int64_t o = rows.first; o < rows.first + rows.count; ++o) {
        const std::int64_t in_row = vertical.input_of(o, row_taps.first);
        const std::int64_t in_column = horizontal.input_of(columns.first, column_taps.first);
        const T* patch = p.x + (in_row * g.in_width + in_column) * p.pixel;
        T* pixel = p.y + (o * g.out_width + columns.first) * g.out_channels;
        for (std::int64_t i = 0; i < columns.count; ++i) {
          group.add(patch + i * g.stride_width * p.pixel, pixel + i * g.out_channels);
        }
      }
      group.flush();
    });
  });
}

// Computes what convolve_plane() does where x has a plane per channel.
template <class T>
void convolve_lines(const WindowGeometry& g, const Planes<T>& p, std::int64_t first_row,
                    const Gemm<T>& product) {
  multiply_lines<T>({.lines = walk_of_output(vertical_axis(g)),
                     .pixels = walk_of_output(horizontal_axis(g)),
                     .planes = p.x,
                     .channels = p.channels,
                     .channel_step = p.channel,
                     .product = product,
                     .first_row = first_row,
                     .window_width = g.window_width,
                     .result = p.y,
                     .line_step = g.out_width * g.out_channels,
                     .pixel_step = g.out_channels});
}

// The result of a plane that sees nothing but padding.
template <class T>
void finish_nothing(const WindowGeometry& g, const Gemm<T>& product, T* y) {
  for (std::int64_t i = 0; i < g.out_height * g.out_width; ++i, y += g.out_channels) {
    std::fill_n(y, product.b.columns, T(0));
    finish_row(y, product.b.columns, product.bias, product.activation);
  }
}

// All planes of a group whose right operand is in the product. The chains go on over the taps of
// the depth; what is done with a finished sum is left to the last.
template <class T>
void convolve_group(const WindowGeometry& g, Planes<T> p, Gemm<T> product) {
  const WindowAxis depth = depth_axis(g);
  const T *x = p.x, *bias = product.bias;
  const Activation activation = product.activation;
  const std::int64_t tap_rows = g.window_height * g.window_width * p.channels;
  for (std::int64_t o = 0; o < g.out_depth; ++o) {
    const TapRange taps = taps_of_output(depth, o);
    product.accumulate = false;
    for (std::int64_t t = 0; t < taps.count; ++t, product.accumulate = true) {
      const bool last = t + 1 == taps.count;
      product.bias = last ? bias : nullptr;
      product.activation = last ? activation : Activation::kNone;
      const std::int64_t tap = taps.first + t;
      p.x = x + depth.input_of(o, tap) * g.in_height * g.in_width * p.pixel;
      if (p.by_line) {
        convolve_lines(g, p, tap * tap_rows, product);
      } else {
        convolve_plane(g, p, tap * tap_rows, product);
      }
    }
    if (taps.count == 0) finish_nothing(g, product, p.y);
    p.y += g.out_height * g.out_width * g.out_channels;
  }
}

}  // namespace

template <class T>
void conv2d(const WindowGeometry& g, const void* x, const void* packed_filter, void* y,
            const Epilogue* epilogue, void* scratch) {
  const auto* image = static_cast<const T*>(x);
  const auto* filter = static_cast<const T*>(packed_filter);
  auto* result = static_cast<T*>(y);
  Gemm<T> product;
  const T* bias = epilogue ? static_cast<const T*>(epilogue->bias) : nullptr;
  product.bias = bias;
  product.activation = epilogue ? epilogue->activation : Activation::kNone;
  if (forward_by_channel<T>(g)) {
    const T* wide = widened(g, image, static_cast<T*>(scratch));
    product.by_channel = true;
    product.b = channel_rows(filter, g.out_channels);
    return convolve_group(g, {wide, g.out_channels, 1, result}, product);
  }
  const std::int64_t in = g.group_in(), out = g.group_out();
  const std::int64_t size = g.patch_size() * packed_columns<T>(out);
  for (std::int64_t i = 0; i < g.groups; ++i) {
    product.b = packed_panels(filter + i * size, g.patch_size(), out);
    product.bias = bias ? bias + i * out : nullptr;
    Planes<T> planes{image + i * in, g.in_channels, in, result + i * out};
    if (by_line(g)) {
      planes.x = make_planes(planes.x, in_pixels(g), in, g.in_channels, scratch);
      planes.pixel = 1;
      planes.channel = plane_step<T>(in_pixels(g));
      planes.by_line = true;
    }
    convolve_group(g, planes, product);
  }
}

#define SAMEGRAD_FLOAT(T)                                                                          \
  template std::size_t conv2d_packed_bytes<T>(const WindowGeometry&);                              \
  template void conv2d_pack<T>(const WindowGeometry&, const void*, std::int64_t, std::int64_t,     \
                               void*);                                                             \
  template std::size_t conv2d_scratch_bytes<T>(const WindowGeometry&);                             \
  template void conv2d<T>(const WindowGeometry&, const void*, const void*, void*, const Epilogue*, \
                          void*);
#include "kernels/instantiate.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
