// Groups of one input channel, as depthwise convolutions have: channel by channel, the lanes of a
// register being channels, where a product per group would leave most lanes empty. The bits are
// those of the product: a chain over the same elements in the same order.
//
// With m results per channel the channels are brought to be as wide as the results: repeated m
// times, or the results cut into m parts that are as wide as the input.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/gemm.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

inline bool has_single_channels(const WindowGeometry& g) {
  return g.groups > 1 && g.groups == g.in_channels;
}
// From a register of results per group on, a product leaves no lane empty.
template <class T>
bool forward_by_channel(const WindowGeometry& g) {
  return has_single_channels(g) && g.group_out() < Vec<T>::kLanes;
}
template <class T>
bool filter_grad_by_channel(const WindowGeometry& g) {
  return forward_by_channel<T>(g);
}
inline bool input_grad_by_channel(const WindowGeometry& g) {
  return has_single_channels(g);
}

template <class T>
std::size_t channel_bytes(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(rows * columns) * sizeof(T);
}

// A right operand whose rows are all channels.
template <class T>
Panels<T> channel_rows(const T* data, std::int64_t columns) {
  return {.data = data, .columns = columns, .row_step = columns, .narrow_row_step = columns};
}

// The input with each channel repeated, so that it is beside its results.
template <class T>
std::size_t widened_bytes(const WindowGeometry& g) {
  return g.group_out() == 1 ? 0 : channel_bytes<T>(g.in_size() / g.in_channels, g.out_channels);
}
template <class T>
const T* widened(const WindowGeometry& g, const T* x, T* scratch) {
  const std::int64_t m = g.group_out();
  if (m == 1) return x;
  for (std::int64_t i = 0; i < g.in_size(); ++i) std::fill_n(scratch + i * m, m, x[i]);
  return scratch;
}

// Rows of `channels` groups of m elements, cut into m parts: element j of each group goes to part
// j. The parts of one row follow each other in steps of `part`, rows in steps of `row`.
template <class T>
void cut_groups(const T* from, std::int64_t rows, std::int64_t channels, std::int64_t m,
                std::int64_t row, std::int64_t part, T* to) {
  for (std::int64_t r = 0; r < rows; ++r, from += channels * m) {
    for (std::int64_t j = 0; j < m; ++j) {
      T* place = to + r * row + j * part;
      for (std::int64_t c = 0; c < channels; ++c) place[c] = from[c * m + j];
    }
  }
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
