#include "kernels/product_functions.h"
#include "kernels/product_pack.h"
#include "kernels/window_taps.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// Rows (kh, kw, out) by columns (in): each tap of the filter transposed.
template <class T>
std::size_t conv2d_input_grad_packed_bytes(const WindowGeometry& g) {
  return packed_size_bytes<T>(g.window_height * g.window_width * g.out_channels, g.in_channels);
}

template <class T>
void conv2d_input_grad_pack(const WindowGeometry& g, const void* filter, void* packed) {
  const std::int64_t taps = g.window_height * g.window_width;
  const std::int64_t out = g.out_channels;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    pack_rows(static_cast<const T*>(filter) + tap * g.in_channels * out, out, g.in_channels, out,
              true, tap * out, taps * out, static_cast<T*>(packed));
  }
}

template <class T>
std::size_t conv2d_input_grad_scratch_bytes(const WindowGeometry&) {
  return 0;
}

// Gathers: an input pixel's sum stays in registers while the taps that reach it pass, so ascending
// taps walk backwards over the output.
template <class T>
void conv2d_input_grad(const WindowGeometry& g, const void* dy, const void* packed, void* dx,
                       void*) {
  const auto* cotangent = static_cast<const T*>(dy);
  auto* result = static_cast<T*>(dx);
  const std::int64_t out = g.out_channels;
  Product<T> product;
  product.b = packed_panels(static_cast<const T*>(packed), g.window_height * g.window_width * out,
                            g.in_channels);
  RowGroup<T> group(product);
  for_input_runs(vertical_axis(g), [&](Range rows, Range row_taps) {
    for_input_runs(horizontal_axis(g), [&](Range columns, Range column_taps) {
      product.walk = {.outer = row_taps.count,
                      .inner = column_taps.count,
                      .length = out,
                      .a_outer = -g.out_width * out,
                      .b_outer = g.stride_height * g.window_width * out,
                      .a_inner = -out,
                      .b_inner = g.stride_width * out};
      product.b_first_row = (row_taps.first * g.window_width + column_taps.first) * out;
      const std::int64_t out_column =
          (columns.first + g.pad_left - column_taps.first) / g.stride_width;
      for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t in_row = rows.first + r * g.stride_height;
        const std::int64_t out_row = (in_row + g.pad_top - row_taps.first) / g.stride_height;
        const T* source = cotangent + (out_row * g.out_width + out_column) * out;
        T* pixel = result + (in_row * g.in_width + columns.first) * g.in_channels;
        for (std::int64_t i = 0; i < columns.count; ++i) {
          group.add(source + i * out, pixel + i * g.stride_width * g.in_channels);
        }
      }
      group.flush();
    });
  });
}

template <class T>
std::size_t conv2d_filter_grad_scratch_bytes(const WindowGeometry& g) {
  return packed_size_bytes<T>(g.out_pixels(), g.out_channels);
}

namespace {

// The filter's gradient for the columns of product.b, which go to `result` and beyond. Rows are the
// patch elements; the contraction walks over the output pixels their tap can see.
template <class T>
void multiply_patches(const WindowGeometry& g, const T* image, Product<T>& product, T* result) {
  const std::int64_t channels = g.in_channels;
  RowGroup<T> group(product);
  Range rows, columns;
  for (std::int64_t tap = 0; tap < g.window_height * g.window_width; ++tap) {
    const std::int64_t ky = tap / g.window_width, kx = tap % g.window_width;
    const Range tap_rows = outputs_of_tap(vertical_axis(g), ky);
    const Range tap_columns = outputs_of_tap(horizontal_axis(g), kx);
    if (tap == 0 || tap_rows != rows || tap_columns != columns) {
      group.flush();
      rows = tap_rows;
      columns = tap_columns;
      product.walk = {.outer = rows.count,
                      .length = columns.count,
                      .a_outer = g.stride_height * g.in_width * channels,
                      .b_outer = g.out_width,
                      .a_step = g.stride_width * channels};
      product.b_first_row = rows.first * g.out_width + columns.first;
    }
    const std::int64_t in_row = rows.first * g.stride_height - g.pad_top + ky;
    const std::int64_t in_column = columns.first * g.stride_width - g.pad_left + kx;
    const T* source = image + (in_row * g.in_width + in_column) * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      group.add(source + c, result + (tap * channels + c) * g.out_channels);
    }
  }
  group.flush();
}

}  // namespace

// Packs dy where many patch elements read it again; else only the columns that fill no panel.
template <class T>
void conv2d_filter_grad(const WindowGeometry& g, const void* x, const void* dy, void* dfilter,
                        bool accumulate, void* scratch) {
  const auto* image = static_cast<const T*>(x);
  const auto* cotangent = static_cast<const T*>(dy);
  auto* packed = static_cast<T*>(scratch);
  auto* result = static_cast<T*>(dfilter);
  const std::int64_t out = g.out_channels, pixels = g.out_pixels();
  const std::int64_t direct = g.patch_size() < 32 ? out / kPanelColumns<T> * kPanelColumns<T> : 0;
  Product<T> product;
  product.accumulate = accumulate;
  if (direct > 0) {
    product.b = {cotangent, direct, kPanelColumns<T>, out, out};
    multiply_patches(g, image, product, result);
  }
  if (direct < out) {
    pack_rows(cotangent + direct, pixels, out - direct, out, false, 0, pixels, packed);
    product.b = packed_panels<T>(packed, pixels, out - direct);
    multiply_patches(g, image, product, result + direct);
  }
}

#define SAMEGRAD_FLOAT(T)                                                                     \
  template std::size_t conv2d_input_grad_packed_bytes<T>(const WindowGeometry&);              \
  template void conv2d_input_grad_pack<T>(const WindowGeometry&, const void*, void*);         \
  template std::size_t conv2d_input_grad_scratch_bytes<T>(const WindowGeometry&);             \
  template void conv2d_input_grad<T>(const WindowGeometry&, const void*, const void*, void*,  \
                                     void*);                                                  \
  template std::size_t conv2d_filter_grad_scratch_bytes<T>(const WindowGeometry&);            \
  template void conv2d_filter_grad<T>(const WindowGeometry&, const void*, const void*, void*, \
                                      bool, void*);
#include "kernels/instantiate.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
