// Which taps of a window meet which pixels, along one axis.
//
// Taps in the padding are skipped, not multiplied by zeros: an infinite weight outside the image
// makes no NaN. Pixels with the same taps are handled together, as one range per axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

struct WindowAxis {
  std::int64_t in, out, window, stride, pad;
};
inline WindowAxis vertical_axis(const WindowGeometry& g) {
  return {g.in_height, g.out_height, g.window_height, g.stride_height, g.pad_top};
}
inline WindowAxis horizontal_axis(const WindowGeometry& g) {
  return {g.in_width, g.out_width, g.window_width, g.stride_width, g.pad_left};
}

struct Range {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const Range&) const = default;
};

// Taps of output pixel o that lie on the input.
inline Range taps_of_output(const WindowAxis& axis, std::int64_t o) {
  const std::int64_t start = o * axis.stride - axis.pad;
  const std::int64_t first = std::max<std::int64_t>(0, -start);
  const std::int64_t end = std::min(axis.window, axis.in - start);
  return end > first ? Range{first, end - first} : Range{};
}

// Taps that reach input pixel i from some output pixel: first, first + stride, …
inline Range taps_of_input(const WindowAxis& axis, std::int64_t i) {
  const std::int64_t place = i + axis.pad;
  const std::int64_t lowest = std::max<std::int64_t>(0, place - (axis.out - 1) * axis.stride);
  const std::int64_t first = lowest + (place - lowest) % axis.stride;
  const std::int64_t last = std::min(axis.window - 1, place);
  return first <= last ? Range{first, (last - first) / axis.stride + 1} : Range{};
}

// Output pixels whose tap k lies on the input.
inline Range outputs_of_tap(const WindowAxis& axis, std::int64_t k) {
  const std::int64_t before = std::max<std::int64_t>(0, axis.pad - k);
  const std::int64_t first = (before + axis.stride - 1) / axis.stride;
  const std::int64_t last_place = axis.in - 1 + axis.pad - k;
  if (last_place < 0) return {};
  const std::int64_t end = std::min(axis.out, last_place / axis.stride + 1);
  return end > first ? Range{first, end - first} : Range{};
}

// Calls visit(pixels, taps) for runs of neighbouring output pixels with the same taps.
template <class Visit>
void for_output_runs(const WindowAxis& axis, const Visit& visit) {
  for (std::int64_t o = 0; o < axis.out;) {
    const Range taps = taps_of_output(axis, o);
    Range pixels{o, 0};
    for (; o < axis.out && taps_of_output(axis, o) == taps; ++o) ++pixels.count;
    visit(pixels, taps);
  }
}

// The same for input pixels; neighbours in a run are a stride apart.
template <class Visit>
void for_input_runs(const WindowAxis& axis, const Visit& visit) {
  for (std::int64_t phase = 0; phase < std::min(axis.stride, axis.in); ++phase) {
    for (std::int64_t i = phase; i < axis.in;) {
      const Range taps = taps_of_input(axis, i);
      Range pixels{i, 0};
      for (; i < axis.in && taps_of_input(axis, i) == taps; i += axis.stride) ++pixels.count;
      visit(pixels, taps);
    }
  }
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
