// Sizes of convolution and pooling windows, as kernels receive them (channels last, one example).
//
// Taps may be apart (dilation). Of convolutions, channels may be in groups that do not see each
// other, and there may be planes in front of the rows. A plane is what there is in two dimensions,
// so a kernel goes through the taps of the third one after the other, and the chains of its sums go
// on from plane to plane.
#pragma once

#include <cstdint>

namespace samegrad {

struct WindowGeometry {
  std::int64_t in_height, in_width, in_channels;
  std::int64_t out_height, out_width, out_channels;  // pooling: out_channels == in_channels
  std::int64_t window_height, window_width;
  std::int64_t stride_height, stride_width;
  std::int64_t pad_top, pad_left;  // bottom and right padding follow from the sizes
  // From tap to tap of the window, in pixels of the input.
  std::int64_t dilation_height = 1, dilation_width = 1;
  // Convolution only, from here on. Channels of the input and the output are divided evenly among
  // groups: a result sees the input of its own group alone.
  std::int64_t groups = 1;
  // Planes.
  std::int64_t in_depth = 1, out_depth = 1, window_depth = 1;
  std::int64_t stride_depth = 1, pad_front = 0, dilation_depth = 1;

  std::int64_t in_size() const { return in_depth * in_height * in_width * in_channels; }
  std::int64_t out_pixels() const { return out_depth * out_height * out_width; }
  std::int64_t out_size() const { return out_pixels() * out_channels; }
  std::int64_t taps() const { return window_depth * window_height * window_width; }
  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
  // Elements of one patch: the contraction length of the convolution.
  std::int64_t patch_size() const { return taps() * group_in(); }
  // Windows of 2 x 2 side by side: the most frequent pool.
  bool windows_by_two() const {
    return window_height == 2 && window_width == 2 && stride_height == 2 && stride_width == 2 &&
           dilation_height == 1 && dilation_width == 1;
  }
  // These windows without padding, for which pools have a kernel of their own.
  bool tiled_by_two() const {
    return windows_by_two() && pad_top == 0 && pad_left == 0 && 2 * out_height <= in_height &&
           2 * out_width <= in_width;
  }
};

// A part of a filter, seen as a matrix of (tap, channel in of a group) by (channel out).
struct FilterBlock {
  std::int64_t row = 0, column = 0;
  std::int64_t rows, columns;
  std::int64_t stride;  // from row to row where the block is, in elements
};

inline FilterBlock whole_filter(const WindowGeometry& g) {
  return {0, 0, g.patch_size(), g.out_channels, g.out_channels};
}

}  // namespace samegrad
