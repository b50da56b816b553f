#include "kernels/product_functions.h"
#include "kernels/product_pack.h"
#include "kernels/window_taps.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
std::size_t conv2d_scratch_bytes(const WindowGeometry&) {
  return 0;
}

// No patch matrix: a patch is window_height contiguous pieces of the image, read where they are.
template <class T>
void conv2d(const WindowGeometry& g, const void* x, const void* packed_filter, void* y,
            const Epilogue* epilogue, void*) {
  const auto* image = static_cast<const T*>(x);
  auto* result = static_cast<T*>(y);
  const std::int64_t channels = g.in_channels;
  Product<T> product;
  product.b = packed_panels(static_cast<const T*>(packed_filter), g.patch_size(), g.out_channels);
  product.bias = epilogue ? static_cast<const T*>(epilogue->bias) : nullptr;
  product.activation = epilogue ? epilogue->activation : Activation::kNone;
  RowGroup<T> group(product);
  for_output_runs(vertical_axis(g), [&](Range rows, Range row_taps) {
    for_output_runs(horizontal_axis(g), [&](Range columns, Range column_taps) {
      product.walk = {.outer = row_taps.count,
                      .length = column_taps.count * channels,
                      .a_outer = g.in_width * channels,
                      .b_outer = g.window_width * channels};
      product.b_first_row = (row_taps.first * g.window_width + column_taps.first) * channels;
      for (std::int64_t o = rows.first; o < rows.first + rows.count; ++o) {
        const std::int64_t in_row = o * g.stride_height - g.pad_top + row_taps.first;
        const std::int64_t in_column =
            columns.first * g.stride_width - g.pad_left + column_taps.first;
        const T* patch = image + (in_row * g.in_width + in_column) * channels;
        T* pixel = result + (o * g.out_width + columns.first) * g.out_channels;
        for (std::int64_t i = 0; i < columns.count; ++i) {
          group.add(patch + i * g.stride_width * channels, pixel + i * g.out_channels);
        }
      }
      group.flush();
    });
  });
}

#define SAMEGRAD_FLOAT(T)                                                                          \
  template std::size_t conv2d_scratch_bytes<T>(const WindowGeometry&);                             \
  template void conv2d<T>(const WindowGeometry&, const void*, const void*, void*, const Epilogue*, \
                          void*);
#include "kernels/instantiate.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
