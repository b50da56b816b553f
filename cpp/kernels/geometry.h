// Sizes of convolution and pooling windows, as kernels receive them (NHWC, one example).
#pragma once

#include <cstdint>

namespace samegrad {

struct WindowGeometry {
  std::int64_t in_height, in_width, in_channels;
  std::int64_t out_height, out_width, out_channels;  // pooling: out_channels == in_channels
  std::int64_t window_height, window_width;
  std::int64_t stride_height, stride_width;
  std::int64_t pad_top, pad_left;  // bottom and right padding follow from the sizes

  std::int64_t in_size() const { return in_height * in_width * in_channels; }
  std::int64_t out_pixels() const { return out_height * out_width; }
  std::int64_t out_size() const { return out_pixels() * out_channels; }
  // Elements of one patch: the contraction length of the convolution.
  std::int64_t patch_size() const { return window_height * window_width * in_channels; }
};

}  // namespace samegrad
