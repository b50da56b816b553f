// The part of a pooling window that is on the image.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/simd.h"
#include "kernels/window_taps.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

struct WindowRange {
  std::int64_t first_row, end_row, first_column, end_column;  // of the window's own taps
  std::int64_t first_pixel;                                   // where tap (0, 0) is, or would
  std::int64_t size() const { return (end_row - first_row) * (end_column - first_column); }
};

// f(window) for every output pixel, in order.
template <class F>
SAMEGRAD_INLINE void for_each_window(const WindowGeometry& g, F f) {
  for (std::int64_t row = 0; row < g.out_height; ++row) {
    const std::int64_t top = row * g.stride_height - g.pad_top;
    for (std::int64_t column = 0; column < g.out_width; ++column) {
      const std::int64_t left = column * g.stride_width - g.pad_left;
      f(WindowRange{
          .first_row = steps_up_to(-top, g.dilation_height),
          .end_row = std::min(g.window_height, steps_up_to(g.in_height - top, g.dilation_height)),
          .first_column = steps_up_to(-left, g.dilation_width),
          .end_column = std::min(g.window_width, steps_up_to(g.in_width - left, g.dilation_width)),
          .first_pixel = top * g.in_width + left});
    }
  }
}

// The pixel of the image below a tap of a window whose tap (0, 0) is on `first_pixel`.
SAMEGRAD_INLINE std::int64_t pixel_of_tap(const WindowGeometry& g, std::int64_t first_pixel,
                                          std::int64_t row, std::int64_t column) {
  return first_pixel + row * g.dilation_height * g.in_width + column * g.dilation_width;
}

// f(pixel of the image, number of the tap) for the taps that are on the image, in order.
template <class F>
SAMEGRAD_INLINE void for_each_tap(const WindowGeometry& g, const WindowRange& w, F f) {
  for (std::int64_t row = w.first_row; row < w.end_row; ++row) {
    for (std::int64_t column = w.first_column; column < w.end_column; ++column) {
      f(pixel_of_tap(g, w.first_pixel, row, column), row * g.window_width + column);
    }
  }
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
