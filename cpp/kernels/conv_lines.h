// Convolutions to few channels, and the gradients of inputs with few: lanes of columns would be
// empty, so pixels along a line of the result are the lanes. The operand is turned into a plane per
// channel for that. Each element is the same chain as in a tile; where a lane does not see a tap,
// its sum stays as it is.
#pragma once

#include <algorithm>

#include "base/reduction_order.h"
#include "base/rounding.h"
#include "kernels/gemm_narrow.h"
#include "kernels/gemm_pack.h"
#include "kernels/window_taps.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// True if this method pays off for a convolution with this many output and input channels:
// transposing costs as much as some products of each element. A tile has one chain, so contractions
// of a plane must not be longer.
inline bool pays_by_line(const WindowGeometry& g, std::int64_t results, std::int64_t seen) {
  return results <= kMaxNarrowColumns && seen >= 8 &&
         g.window_height * g.window_width * seen <= kContractionBlock;
}

// Along one axis: pixel i of the result sees source pixel i * source_step + offset through each of
// some taps, in order, if there is one.
struct TapWalk {
  std::int64_t pixels;  // of the result
  std::int64_t source_pixels, source_step;
  std::int64_t taps = 0, first_tap = 0, tap_step = 1;
  std::int64_t first_offset = 0, offset_step = 0;

  std::int64_t tap(std::int64_t j) const { return first_tap + j * tap_step; }
  std::int64_t offset(std::int64_t j) const { return first_offset + j * offset_step; }
  bool sees(std::int64_t pixel, std::int64_t j) const {
    const std::int64_t at = pixel * source_step + offset(j);
    return at >= 0 && at < source_pixels;
  }
};

inline TapWalk walk_of_output(const WindowAxis& axis) {
  return {axis.out, axis.in, axis.stride, axis.window, 0, 1, -axis.pad, axis.dilation};
}
// The walk over the input pixels phase, phase + stride, …
inline TapWalk walk_of_input(const WindowAxis& axis, std::int64_t phase) {
  const std::int64_t step = axis.tap_step(), place = phase + axis.pad;
  TapWalk walk{.pixels = divide_up(axis.in - phase, axis.stride),
               .source_pixels = axis.out,
               .source_step = 1,
               .tap_step = step,
               .offset_step = -axis.out_step()};
  std::int64_t first = 0;
  while (first < step && (place - first * axis.dilation) % axis.stride != 0) ++first;
  if (first == step || first >= axis.window) return walk;
  walk.taps = (axis.window - 1 - first) / step + 1;
  walk.first_tap = first;
  walk.first_offset = (place - first * axis.dilation) / axis.stride;
  return walk;
}

template <class T>
struct LineProduct {
  TapWalk lines, pixels;
  const T* planes;            // one plane of the source, of the first channel
  std::int64_t channels;      // of a tap
  std::int64_t channel_step;  // from plane to plane
  const Gemm<T>& product;     // the right operand and what is done with sums
  std::int64_t first_row;     // of the right operand
  std::int64_t window_width;
  T* result;
  std::int64_t line_step, pixel_step;  // of the result
};

// kLines lines from a line on, a register of pixels from a pixel on, all columns.
template <class T, int kLines, int kColumns>
class LineTile {
 public:
  static void run(const LineProduct<T>& p, std::int64_t line, std::int64_t pixel) {
    LineTile t{p, line, pixel};
    t.start();
    for (std::int64_t j = 0; j < p.lines.taps; ++j) t.add_line(j);
    t.finish();
  }

 private:
  static constexpr int kLanes = Vec<T>::kLanes;

  LineTile(const LineProduct<T>& p, std::int64_t line, std::int64_t pixel)
      : p_(p),
        line_(line),
        pixel_(pixel),
        count_(std::min<std::int64_t>(kLanes, p.pixels.pixels - pixel)) {}

  T* result(int l) const { return p_.result + (line_ + l) * p_.line_step + pixel_ * p_.pixel_step; }

  void start() {
    for (int l = 0; l < kLines; ++l) {
      for (int c = 0; c < kColumns; ++c) {
        T lanes[kLanes] = {};
        for (std::int64_t i = 0; p_.product.accumulate && i < count_; ++i) {
          lanes[i] = result(l)[i * p_.pixel_step + c];
        }
        sum_[l][c] = Vec<T>::load(lanes);
      }
    }
  }

  // The taps of one row of the window.
  void add_line(std::int64_t j) {
    const T* from[kLines];
    bool sees[kLines], all = true, any = false;
    for (int l = 0; l < kLines; ++l) {
      sees[l] = p_.lines.sees(line_ + l, j);
      all &= sees[l];
      any |= sees[l];
      const std::int64_t line = (line_ + l) * p_.lines.source_step + p_.lines.offset(j);
      from[l] = p_.planes + (sees[l] ? line * p_.pixels.source_pixels : 0) + pixel_;
    }
    for (std::int64_t i = 0; any && i < p_.pixels.taps; ++i) {
      const std::int64_t offset = p_.pixels.offset(i), at = offset + pixel_;
      const std::int64_t first = std::clamp<std::int64_t>(-at, 0, count_);
      const std::int64_t end = std::clamp<std::int64_t>(p_.pixels.source_pixels - at, 0, count_);
      if (first >= end) continue;
      const std::int64_t tap = p_.lines.tap(j) * p_.window_width + p_.pixels.tap(i);
      if (all && first == 0 && end == count_) {
        add_tap(from, offset, tap, sum_);
      } else {
        add_for_some(from, offset, tap, sees, first, end);
      }
    }
  }

  void add_for_some(const T* const (&from)[kLines], std::int64_t offset, std::int64_t tap,
                    const bool (&sees)[kLines], std::int64_t first, std::int64_t end) {
    Vec<T> sum[kLines][kColumns];
    std::copy_n(&sum_[0][0], kLines * kColumns, &sum[0][0]);
    add_tap(from, offset, tap, sum);
    const Mask<T> before = first_lanes<T>(first), within = first_lanes<T>(end);
    for (int l = 0; l < kLines; ++l) {
      for (int c = 0; sees[l] && c < kColumns; ++c) {
        sum_[l][c] = select(before, sum_[l][c], select(within, sum[l][c], sum_[l][c]));
      }
    }
  }

  // All channels of a tap.
  SAMEGRAD_INLINE void add_tap(const T* const (&from)[kLines], std::int64_t offset,
                               std::int64_t tap, Vec<T> (&total)[kLines][kColumns]) const {
    const std::int64_t b_step = step_of_narrow(p_.product.b);
    const T* b = p_.product.b.data + (p_.first_row + tap * p_.channels) * b_step;
    Vec<T> sum[kLines][kColumns];
#pragma GCC unroll 16
    for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) sum[l][c] = total[l][c];
    }
    for (std::int64_t n = p_.channels; n > 0; --n, offset += p_.channel_step, b += b_step) {
      Vec<T> factor[kColumns];
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) factor[c] = Vec<T>(b[c]);
#pragma GCC unroll 16
      for (int l = 0; l < kLines; ++l) {
        const Vec<T> values = Vec<T>::load(from[l] + offset);
#pragma GCC unroll 16
        for (int c = 0; c < kColumns; ++c) sum[l][c] = fma(values, factor[c], sum[l][c]);
      }
    }
#pragma GCC unroll 16
    for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) total[l][c] = sum[l][c];
    }
  }

  void finish() const {
    const Vec<T> zero = T(0);
    for (int l = 0; l < kLines; ++l) {
      for (int c = 0; c < kColumns; ++c) {
        Vec<T> sum = sum_[l][c];
        if (p_.product.bias != nullptr) sum = sum + Vec<T>(p_.product.bias[c]);
        if (p_.product.activation == Activation::kRelu) sum = select(zero > sum, zero, sum);
        T lanes[kLanes];
        sum.store(lanes);
        for (std::int64_t i = 0; i < count_; ++i) result(l)[i * p_.pixel_step + c] = lanes[i];
      }
    }
  }

  const LineProduct<T>& p_;
  const std::int64_t line_, pixel_, count_;
  Vec<T> sum_[kLines][kColumns];
};

// Multiplies as many lines at a time as there are registers for, then half as many, …
template <class T, int kColumns, int kLines>
void multiply_some_lines(const LineProduct<T>& p, std::int64_t line) {
  for (; line + kLines <= p.lines.pixels; line += kLines) {
    for (std::int64_t pixel = 0; pixel < p.pixels.pixels; pixel += Vec<T>::kLanes) {
      LineTile<T, kLines, kColumns>::run(p, line, pixel);
    }
  }
  if constexpr (kLines > 1) multiply_some_lines<T, kColumns, kLines / 2>(p, line);
}

template <class T>
void multiply_lines(const LineProduct<T>& p) {
  switch (p.product.b.columns) {
    case 1:
      return multiply_some_lines<T, 1, 4>(p, 0);
    case 2:
      return multiply_some_lines<T, 2, 4>(p, 0);
    case 3:
      return multiply_some_lines<T, 3, 4>(p, 0);
    default:
      return multiply_some_lines<T, 4, 4>(p, 0);
  }
}

// ---- the operand, with one plane per channel ----

template <class T>
std::int64_t plane_step(std::int64_t pixels) {
  return packed_columns<T>(pixels);
}

// A register may be read from before the first pixel and beyond the last one.
template <class T>
std::size_t planes_bytes(std::int64_t channels, std::int64_t pixels) {
  return static_cast<std::size_t>(channels * plane_step<T>(pixels) + 2 * Vec<T>::kLanes) *
         sizeof(T);
}

// Makes planes of `channels` adjacent channels; pixels are `pixel_step` apart.
template <class T>
const T* make_planes(const T* image, std::int64_t pixels, std::int64_t channels,
                     std::int64_t pixel_step, void* memory) {
  auto* planes = static_cast<T*>(memory) + Vec<T>::kLanes;
  const std::int64_t step = plane_step<T>(pixels);
  std::fill_n(planes - Vec<T>::kLanes, Vec<T>::kLanes, T(0));
  pack_panel_transposed(image, channels, pixels, pixel_step, step, planes);
  std::fill_n(planes + channels * step, Vec<T>::kLanes, T(0));
  return planes;
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
