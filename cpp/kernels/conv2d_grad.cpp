#include "kernels/conv_depthwise.h"
#include "kernels/conv_lines.h"
#include "kernels/gemm_functions.h"
#include "kernels/gemm_pack.h"
#include "kernels/window_taps.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// Per group, rows (depth, row, column, out) by columns (in): each tap of the filter transposed. By
// channel the same with the groups side by side.
template <class T>
std::size_t conv2d_input_grad_packed_bytes(const WindowGeometry& g) {
  const std::int64_t k = g.taps() * g.group_out();
  if (input_grad_by_channel(g)) return channel_bytes<T>(k, g.in_channels);
  return static_cast<std::size_t>(g.groups) * packed_size_bytes<T>(k, g.group_in());
}

template <class T>
void conv2d_input_grad_pack(const WindowGeometry& g, const void* filter, std::int64_t begin,
                            std::int64_t end, void* packed) {
  const auto* from = static_cast<const T*>(filter);
  auto* to = static_cast<T*>(packed);
  const std::int64_t taps = g.taps(), in = g.group_in(), out = g.group_out();
  if (input_grad_by_channel(g)) {
    if (begin > 0) return;
    return cut_groups(from, taps, g.in_channels, out, out * g.in_channels, g.in_channels, to);
  }
  const std::int64_t size = taps * out * packed_columns<T>(in);
  for (std::int64_t i = 0; i < g.groups; ++i, to += size) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      pack_rows(from + (tap * in + begin) * g.out_channels + i * out, out, end - begin,
                g.out_channels, true, tap * out, taps * out, to + begin * taps * out);
    }
  }
}

template <class T>
std::size_t conv2d_input_grad_scratch_bytes(const WindowGeometry& g) {
  const std::int64_t out = g.group_out();
  if (input_grad_by_channel(g)) {
    return out > 1 ? channel_bytes<T>(g.out_pixels(), g.out_channels) : 0;
  }
  return pays_by_line(g, g.group_in(), out) ? planes_bytes<T>(out, g.out_pixels()) : 0;
}

namespace {

// One plane of the cotangent and of the result, both at the first channel of a group.
template <class T>
struct GradientPlanes {
  const T* dy;
  std::int64_t pixel;     // from pixel to pixel of dy
  std::int64_t channels;  // of dy that a result sees
  std::int64_t channel;   // from channel to channel
  T* dx;
  bool by_line = false;  // dy has a plane per channel
};

// Gathers: an input pixel's sum stays in registers while the taps that reach it pass, so ascending
// taps go backwards over the output.
template <class T>
void gather_plane(const WindowGeometry& g, const GradientPlanes<T>& p, std::int64_t first_row,
                  Gemm<T> product) {
  const WindowAxis vertical = vertical_axis(g), horizontal = horizontal_axis(g);
  RowBatch<T> group(product);
  for_input_runs(vertical, [&](TapRange rows, TapRange row_taps) {
    for_input_runs(horizontal, [&](TapRange columns, TapRange column_taps) {
      product.walk = {.outer = row_taps.count,
                      .inner = column_taps.count,
                      .length = p.channels,
                      .a_outer = -vertical.out_step() * g.out_width * p.pixel,
                      .b_outer = vertical.tap_step() * g.window_width * p.channels,
                      .a_inner = -horizontal.out_step() * p.pixel,
                      .b_inner = horizontal.tap_step() * p.channels,
                      .a_step = p.channel};
      product.b_first_row =
          first_row + (row_taps.first * g.window_width + column_taps.first) * p.channels;
      const std::int64_t out_column = horizontal.output_of(columns.first, column_taps.first);
      for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t in_row = rows.first + r * g.stride_height;
        const std::int64_t out_row = vertical.output_of(in_row, row_taps.first);
        const T* source = p.dy + (out_row * g.out_width + out_column) * p.pixel;
        T* pixel = p.dx + (in_row * g.in_width + columns.first) * g.in_channels;
        for (std::int64_t i = 0; i < columns.count; ++i) {
          group.add(source + i * p.pixel, pixel + i * g.stride_width * g.in_channels);
        }
      }
      group.flush();
    });
  });
}

// Computes what gather_plane() does where dy has a plane per channel.
template <class T>
void gather_lines(const WindowGeometry& g, const GradientPlanes<T>& p, std::int64_t first_row,
                  const Gemm<T>& product) {
  const WindowAxis vertical = vertical_axis(g), horizontal = horizontal_axis(g);
  for (std::int64_t y = 0; y < std::min(vertical.stride, vertical.in); ++y) {
    for (std::int64_t x = 0; x < std::min(horizontal.stride, horizontal.in); ++x) {
      multiply_lines<T>({.lines = walk_of_input(vertical, y),
                         .pixels = walk_of_input(horizontal, x),
                         .planes = p.dy,
                         .channels = p.channels,
                         .channel_step = p.channel,
                         .product = product,
                         .first_row = first_row,
                         .window_width = g.window_width,
                         .result = p.dx + (y * g.in_width + x) * g.in_channels,
                         .line_step = vertical.stride * g.in_width * g.in_channels,
                         .pixel_step = horizontal.stride * g.in_channels});
    }
  }
}

// All planes of a group whose right operand is in the product; the chains go on over the taps of
// the depth.
template <class T>
void gather_group(const WindowGeometry& g, GradientPlanes<T> p, Gemm<T> product) {
  const WindowAxis depth = depth_axis(g);
  const T* dy = p.dy;
  const std::int64_t tap_rows = g.window_height * g.window_width * p.channels;
  for (std::int64_t i = 0; i < g.in_depth; ++i) {
    const TapRange taps = taps_of_input(depth, i);
    product.accumulate = false;
    for (std::int64_t t = 0; t < taps.count; ++t, product.accumulate = true) {
      const std::int64_t tap = taps.first + t * depth.tap_step();
      p.dy = dy + depth.output_of(i, tap) * g.out_height * g.out_width * p.pixel;
      if (p.by_line) {
        gather_lines(g, p, tap * tap_rows, product);
      } else {
        gather_plane(g, p, tap * tap_rows, product);
      }
    }
    const std::int64_t pixels = g.in_height * g.in_width;
    for (std::int64_t n = 0; taps.count == 0 && n < pixels; ++n) {
      std::fill_n(p.dx + n * g.in_channels, product.b.columns, T(0));
    }
    p.dx += pixels * g.in_channels;
  }
}

}  // namespace

template <class T>
void conv2d_input_grad(const WindowGeometry& g, const void* dy, const void* packed, void* dx,
                       void* scratch) {
  const auto* cotangent = static_cast<const T*>(dy);
  const auto* filter = static_cast<const T*>(packed);
  auto* result = static_cast<T*>(dx);
  const std::int64_t in = g.group_in(), out = g.group_out();
  Gemm<T> product;
  if (input_grad_by_channel(g)) {
    const std::int64_t part = g.out_pixels() * g.in_channels;
    if (out > 1) {
      cut_groups(cotangent, g.out_pixels(), g.in_channels, out, g.in_channels, part,
                 static_cast<T*>(scratch));
      cotangent = static_cast<const T*>(scratch);
    }
    product.by_channel = true;
    product.b = channel_rows(filter, g.in_channels);
    return gather_group(g, {cotangent, g.in_channels, out, part, result}, product);
  }
  const std::int64_t size = g.taps() * out * packed_columns<T>(in);
  for (std::int64_t i = 0; i < g.groups; ++i) {
    product.b = packed_panels(filter + i * size, g.taps() * out, in);
    GradientPlanes<T> planes{cotangent + i * out, g.out_channels, out, 1, result + i * in};
    if (pays_by_line(g, in, out)) {
      planes.dy = make_planes(planes.dy, g.out_pixels(), out, g.out_channels, scratch);
      planes.pixel = 1;
      planes.channel = plane_step<T>(g.out_pixels());
      planes.by_line = true;
    }
    gather_group(g, planes, product);
  }
}

template <class T>
std::size_t conv2d_filter_grad_scratch_bytes(const WindowGeometry& g, const FilterBlock& block) {
  if (filter_grad_by_channel<T>(g)) return widened_bytes<T>(g);
  return packed_size_bytes<T>(g.out_pixels(), std::min(g.group_out(), block.columns));
}

namespace {

// Images at the first channel of a group, and rows of the gradient of the filter.
template <class T>
struct Patches {
  const T* image;
  std::int64_t pixel;     // from pixel to pixel of the image
  std::int64_t channels;  // rows of a tap
  std::int64_t row, end;  // patch elements
  T* result;              // of `row`
  std::int64_t stride;    // from row to row of the result
};

// Output pixels that a tap of the filter can see.
struct Seen {
  TapRange planes, rows, columns;
  bool operator==(const Seen&) const = default;
};

// The filter's gradient for the columns of product.b, which go to p.result and beyond. Rows are the
// patch elements; the contraction walks over the output pixels their tap can see.
template <class T>
void multiply_patches(const WindowGeometry& g, const Patches<T>& p, Gemm<T> product) {
  const WindowAxis depth = depth_axis(g), vertical = vertical_axis(g),
                   horizontal = horizontal_axis(g);
  RowBatch<T> group(product);
  Seen seen;
  T* result = p.result;
  for (std::int64_t at = p.row; at < p.end;) {
    const std::int64_t tap = at / p.channels;
    const std::int64_t kx = tap % g.window_width, row = tap / g.window_width;
    const std::int64_t ky = row % g.window_height, kz = row / g.window_height;
    const Seen now{outputs_of_tap(depth, kz), outputs_of_tap(vertical, ky),
                   outputs_of_tap(horizontal, kx)};
    const auto& [planes, rows, columns] = now;
    if (at == p.row || now != seen) {
      group.flush();
      seen = now;
      product.walk = {.outer = planes.count,
                      .inner = rows.count,
                      .length = columns.count,
                      .a_outer = g.stride_depth * g.in_height * g.in_width * p.pixel,
                      .b_outer = g.out_height * g.out_width,
                      .a_inner = g.stride_height * g.in_width * p.pixel,
                      .b_inner = g.out_width,
                      .a_step = g.stride_width * p.pixel};
      product.b_first_row =
          (planes.first * g.out_height + rows.first) * g.out_width + columns.first;
    }
    const std::int64_t in_plane = depth.input_of(planes.first, kz);
    const std::int64_t in_row = vertical.input_of(rows.first, ky);
    const std::int64_t in_column = horizontal.input_of(columns.first, kx);
    const T* source =
        p.image + ((in_plane * g.in_height + in_row) * g.in_width + in_column) * p.pixel;
    for (const std::int64_t next = std::min(p.end, (tap + 1) * p.channels); at < next; ++at) {
      group.add(source + at - tap * p.channels, result);
      result += p.stride;
    }
  }
  group.flush();
}

// `out` columns of one group. Packs dy where many patch elements read it again; else only the
// columns that fill no panel.
template <class T>
void multiply_group(const WindowGeometry& g, Patches<T> p, const T* dy, std::int64_t out, T* packed,
                    Gemm<T> product) {
  const std::int64_t all = g.out_channels, pixels = g.out_pixels();
  const std::int64_t direct = p.end - p.row < 32 ? out / kPanelColumns<T> * kPanelColumns<T> : 0;
  if (direct > 0) {
    product.b = {dy, direct, kPanelColumns<T>, all, all};
    multiply_patches(g, p, product);
  }
  if (direct < out) {
    pack_rows(dy + direct, pixels, out - direct, all, false, 0, pixels, packed);
    product.b = packed_panels<T>(packed, pixels, out - direct);
    p.result += direct;
    multiply_patches(g, p, product);
  }
}

}  // namespace

template <class T>
void conv2d_filter_grad(const WindowGeometry& g, const void* x, const void* dy,
                        const FilterBlock& block, void* dfilter, bool accumulate, void* scratch) {
  const auto* image = static_cast<const T*>(x);
  const T* cotangent = static_cast<const T*>(dy) + block.column;
  auto* memory = static_cast<T*>(scratch);
  auto* result = static_cast<T*>(dfilter);
  const std::int64_t end = block.row + block.rows;
  Gemm<T> product;
  product.accumulate = accumulate;
  if (filter_grad_by_channel<T>(g)) {
    product.by_channel = true;
    product.b = channel_rows(cotangent, g.out_channels);
    product.b.columns = block.columns;
    const T* channels = widened(g, image, memory) + block.column;
    return multiply_patches(g, {channels, g.out_channels, 1, block.row, end, result, block.stride},
                            product);
  }
  const std::int64_t in = g.group_in(), out = g.group_out();
  for (std::int64_t done = 0; done < block.columns;) {
    const std::int64_t column = block.column + done, group = column / out;
    const std::int64_t columns = std::min(block.columns - done, (group + 1) * out - column);
    multiply_group(
        g, {image + group * in, g.in_channels, in, block.row, end, result + done, block.stride},
        cotangent + done, columns, memory, product);
    done += columns;
  }
}

#define SAMEGRAD_FLOAT(T)                                                                    \
  template std::size_t conv2d_input_grad_packed_bytes<T>(const WindowGeometry&);             \
  template void conv2d_input_grad_pack<T>(const WindowGeometry&, const void*, std::int64_t,  \
                                          std::int64_t, void*);                              \
  template std::size_t conv2d_input_grad_scratch_bytes<T>(const WindowGeometry&);            \
  template void conv2d_input_grad<T>(const WindowGeometry&, const void*, const void*, void*, \
                                     void*);                                                 \
  template std::size_t conv2d_filter_grad_scratch_bytes<T>(const WindowGeometry&,            \
                                                           const FilterBlock&);              \
  template void conv2d_filter_grad<T>(const WindowGeometry&, const void*, const void*,       \
                                      const FilterBlock&, void*, bool, void*);
#include "kernels/instantiate.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
