// Window geometry along one axis: the range of pixels that each tap of a window meets.
//
// Taps in the padding are skipped, not multiplied by zeros: an infinite weight outside the image
// makes no NaN. Pixels with the same taps are handled together, as one range per axis.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/rounding.h"
#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

struct WindowAxis {
  std::int64_t in, out, window, stride, pad, dilation;

  // The distance in taps and in outputs between two taps of neighbouring outputs that reach the
  // same input pixel.
  std::int64_t tap_step() const { return stride / common(); }
  std::int64_t out_step() const { return dilation / common(); }
  // Position of tap k of output o on the input.
  std::int64_t input_of(std::int64_t o, std::int64_t k) const {
    return o * stride - pad + k * dilation;
  }
  // The output whose tap k is on input pixel i.
  std::int64_t output_of(std::int64_t i, std::int64_t k) const {
    return (i + pad - k * dilation) / stride;
  }

 private:
  std::int64_t common() const { return dilation == 1 ? 1 : std::gcd(stride, dilation); }
};
inline WindowAxis depth_axis(const WindowGeometry& g) {
  return {g.in_depth, g.out_depth, g.window_depth, g.stride_depth, g.pad_front, g.dilation_depth};
}
inline WindowAxis vertical_axis(const WindowGeometry& g) {
  return {g.in_height,     g.out_height, g.window_height,
          g.stride_height, g.pad_top,    g.dilation_height};
}
inline WindowAxis horizontal_axis(const WindowGeometry& g) {
  return {g.in_width, g.out_width, g.window_width, g.stride_width, g.pad_left, g.dilation_width};
}

struct TapRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const TapRange&) const = default;
};

// The smallest k >= 0 with k * step >= x.
inline std::int64_t steps_up_to(std::int64_t x, std::int64_t step) {
  if (x <= 0) return 0;
  return step == 1 ? x : divide_up(x, step);
}

// Taps of output pixel o that are on the input.
inline TapRange taps_of_output(const WindowAxis& axis, std::int64_t o) {
  const std::int64_t start = o * axis.stride - axis.pad;
  const std::int64_t first = steps_up_to(-start, axis.dilation);
  const std::int64_t end = std::min(axis.window, steps_up_to(axis.in - start, axis.dilation));
  return end > first ? TapRange{first, end - first} : TapRange{};
}

// Taps that reach input pixel i from some output pixel: first, first + tap_step(), …
inline TapRange taps_of_input(const WindowAxis& axis, std::int64_t i) {
  const std::int64_t place = i + axis.pad, step = axis.tap_step();
  std::int64_t first = steps_up_to(place - (axis.out - 1) * axis.stride, axis.dilation);
  const std::int64_t last = std::min(axis.window - 1, place / axis.dilation);
  const std::int64_t round = first + step;
  while (first < round && (place - first * axis.dilation) % axis.stride != 0) ++first;
  return first < round && first <= last ? TapRange{first, (last - first) / step + 1} : TapRange{};
}

// Output pixels whose tap k is on the input.
inline TapRange outputs_of_tap(const WindowAxis& axis, std::int64_t k) {
  const std::int64_t place = axis.pad - k * axis.dilation;
  const std::int64_t first = steps_up_to(place, axis.stride);
  const std::int64_t end = std::min(axis.out, steps_up_to(axis.in + place, axis.stride));
  return end > first ? TapRange{first, end - first} : TapRange{};
}

// Calls visit(pixels, taps) for runs of neighbouring output pixels with the same taps.
template <class Visit>
void for_output_runs(const WindowAxis& axis, const Visit& visit) {
  for (std::int64_t o = 0; o < axis.out;) {
    const TapRange taps = taps_of_output(axis, o);
    TapRange pixels{o, 0};
    for (; o < axis.out && taps_of_output(axis, o) == taps; ++o) ++pixels.count;
    visit(pixels, taps);
  }
}

// Calls visit(pixels, taps) for runs of input pixels with the same taps. Neighbours in a run are a
// stride apart.
template <class Visit>
void for_input_runs(const WindowAxis& axis, const Visit& visit) {
  for (std::int64_t phase = 0; phase < std::min(axis.stride, axis.in); ++phase) {
    for (std::int64_t i = phase; i < axis.in;) {
      const TapRange taps = taps_of_input(axis, i);
      TapRange pixels{i, 0};
      for (; i < axis.in && taps_of_input(axis, i) == taps; i += axis.stride) ++pixels.count;
      visit(pixels, taps);
    }
  }
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
