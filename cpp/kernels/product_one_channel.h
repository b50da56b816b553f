// The gradient of an image of one channel, which is also what a transposed convolution to one
// channel computes: columns of the image are the lanes. The lines of the cotangent pass by from the
// last to the first, each turned into a line per channel while it is in the first cache. The lines
// of the image that one of them reaches have their sums in registers together, so that a load of
// the cotangent serves all taps of a column of the window. Each element is the same chain as in a
// tile; where a lane does not see a tap, its sum stays as it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/product_lines.h"
#include "kernels/transpose.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

inline constexpr std::int64_t kMostWindowLines = 5;

inline bool input_grad_of_one_channel(const WindowGeometry& g) {
  const bool flat = g.in_depth == 1 && g.window_depth == 1 && g.out_depth == 1 && g.pad_front == 0;
  const bool dense = g.dilation_height == 1 && g.dilation_width == 1;
  return flat && dense && g.in_channels == 1 && pays_by_line(g, 1, g.out_channels) &&
         g.window_height > 1 && g.window_height <= kMostWindowLines &&
         g.stride_height <= g.window_height && g.stride_width <= 2 &&
         g.stride_width <= g.window_width;
}

// Taps of a line of the window that see the same column of the cotangent, for neighbouring columns
// of the image ("phases"), are a shift.
inline std::int64_t shift_count(const WindowGeometry& g) {
  return (g.window_width + g.stride_width - 1) / g.stride_width;
}

template <class T>
std::size_t one_channel_packed_bytes(const WindowGeometry& g) {
  return static_cast<std::size_t>(shift_count(g) * g.out_channels * g.window_height *
                                  g.stride_width) *
         sizeof(T);
}

// By shift and channel the taps next to each other, line by line, phase by phase.
template <class T>
void pack_one_channel(const WindowGeometry& g, const T* filter, T* to) {
  const std::int64_t phases = g.stride_width, channels = g.out_channels;
  for (std::int64_t shift = 0; shift < shift_count(g); ++shift) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t line = 0; line < g.window_height; ++line) {
        for (std::int64_t phase = 0; phase < phases; ++phase, ++to) {
          const std::int64_t column = shift * phases + phase;
          *to = column < g.window_width ? filter[(line * g.window_width + column) * channels + c]
                                        : T(0);
        }
      }
    }
  }
}

// Columns of the image, a register of each phase: strip i holds from first + i * kLanes on.
template <class T>
struct Strips {
  explicit Strips(const WindowGeometry& g)
      : first(g.pad_left / g.stride_width),
        columns((g.in_width - 1 + g.pad_left) / g.stride_width + 1 - first),
        count((columns + Vec<T>::kLanes - 1) / Vec<T>::kLanes) {}
  std::int64_t first, columns, count;
};

// A line of the cotangent with its channels below each other, and the sums of the lines it reaches.
template <class T>
std::int64_t line_step(const WindowGeometry& g) {
  return packed_columns<T>(g.out_width);
}
template <class T>
std::size_t one_channel_scratch_bytes(const WindowGeometry& g) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  const std::int64_t channels = packed_columns<T>(g.out_channels);
  const Strips<T> strips(g);
  const std::int64_t beyond = strips.first + (strips.count + 2) * kLanes + g.window_width;
  const std::int64_t sums = strips.count * g.window_height * g.stride_width * kLanes;
  return static_cast<std::size_t>(channels * line_step<T>(g) + beyond + sums) * sizeof(T) + 128;
}

// A register for all uses of a value: the compiler would read it from memory again for each.
template <class T>
SAMEGRAD_INLINE Vec<T> load_once(const T* from) {
  typename Vec<T>::Raw raw = Vec<T>::load(from).raw;
#if defined(__x86_64__)
  asm("" : "+v"(raw));
#endif
  return raw;
}

// A block of registers. By itself: inside of a loop there would be a pointer to each row of it.
template <class T>
[[gnu::noinline]] void turn_block(const T* from, std::int64_t from_step, T* to,
                                  std::int64_t to_step) {
  constexpr int kLanes = Vec<T>::kLanes;
  Vec<T> rows[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i += 2, from += 2 * from_step) {
    rows[i] = Vec<T>::load(from);
    rows[i + 1] = Vec<T>::load(from + from_step);
  }
  transpose(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i += 2, to += 2 * to_step) {
    rows[i].store(to);
    rows[i + 1].store(to + to_step);
  }
}

// `pixels` of a line, behind which the image goes on to `end`: a register beyond the line is read,
// too, if there is so much.
template <class T>
[[gnu::noinline]] void turn_line(const T* from, std::int64_t pixels, const T* end,
                                 std::int64_t channels, std::int64_t step, T* to) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  for (std::int64_t m = 0; m < pixels; m += kLanes, from += kLanes * channels) {
    for (std::int64_t c = 0; c < channels; c += kLanes) {
      T* const place = to + c * step + m;
      if (end - from >= kLanes * channels && channels - c >= kLanes) {
        turn_block(from + c, channels, place, step);
        continue;
      }
      T block[kLanes * kLanes] = {};
      for (std::int64_t i = 0; i < std::min(kLanes, pixels - m); ++i) {
        load_some(from + i * channels + c, channels - c, T(0)).store(block + i * kLanes);
      }
      turn_block(block, kLanes, place, step);
    }
  }
}

template <class T, int kLines, int kPhases>
class OneChannelGradient {
 public:
  OneChannelGradient(const WindowGeometry& g, const T* weights, T* dx, void* scratch)
      : g_(g),
        strips_(g),
        weights_(weights),
        dx_(dx),
        step_(line_step<T>(g)),
        shifts_(shift_count(g)) {
    const auto address = reinterpret_cast<std::uintptr_t>(scratch);
    sums_ = static_cast<T*>(scratch) + (64 - address % 64) % 64 / sizeof(T);
    // Room before the first channel: shifts begin there.
    const std::int64_t before = (g.window_width / kPhases / kLanes + 1) * kLanes;
    line_ = sums_ + strips_.count * kSums * kLanes + before;
  }

  void run(const T* dy) {
    std::fill_n(sums_, strips_.count * kSums * kLanes, T(0));
    const std::int64_t size = g_.out_width * g_.out_channels;
    const T* const end = dy + g_.out_height * size;
    for (std::int64_t line = g_.out_height - 1; line >= 0; --line) {
      turn_line(dy + line * size, g_.out_width, end, g_.out_channels, step_, line_);
      for (std::int64_t s = 0; s < strips_.count;) s += add_some(s);
      const std::int64_t first = line * g_.stride_height - g_.pad_top;
      if (line + 1 == g_.out_height) clear_from(first + kLines);
      // The last line leaves all sums behind.
      const std::int64_t stays = line > 0 ? kLines - g_.stride_height : 0;
      for (std::int64_t i = stays; i < kLines; ++i) write(first + i, i);
      roll(stays);
    }
    if (g_.out_height == 0) clear_from(0);
  }

 private:
  static constexpr int kLanes = Vec<T>::kLanes;
  static constexpr int kSums = kLines * kPhases;
  // Strips at a time, so that their sums fill the registers.
  static constexpr int kMost = 2 * kTileRows / kSums >= 4 ? 4 : 2 * kTileRows / kSums >= 2 ? 2 : 1;

  std::int64_t add_some(std::int64_t strip) const {
    const std::int64_t left = strips_.count - strip;
    if (kMost >= 4 && left >= 4) return add_strips<std::min(4, kMost)>(strip);
    if (kMost >= 2 && left >= 2) return add_strips<std::min(2, kMost)>(strip);
    return add_strips<1>(strip);
  }

  template <int kStrips>
  std::int64_t add_strips(std::int64_t strip) const {
    const T* weights = weights_;
    for (std::int64_t shift = 0; shift < shifts_; ++shift) {
      if ((shift + 1) * kPhases <= g_.window_width) {
        add_shift<kStrips, kPhases>(strip, shift, weights);
      } else {
        add_shift<kStrips, 1>(strip, shift, weights);
      }
      weights += g_.out_channels * kSums;
    }
    return kStrips;
  }

  // The taps of one shift, of which there are kTaps in each line of the window.
  template <int kStrips, int kTaps>
  void add_shift(std::int64_t strip, std::int64_t shift, const T* weights) const {
    const std::int64_t column = strips_.first + strip * kLanes - shift;
    T* const memory = sums_ + strip * kSums * kLanes;
    Vec<T> sum[kStrips][kLines][kTaps];
    for_each_sum<kStrips, kTaps>([&](int s, int l, int p) {
      sum[s][l][p] = Vec<T>::load(memory + ((s * kLines + l) * kPhases + p) * kLanes);
    });
    add_channels<kStrips, kTaps>(line_ + column, weights, sum);
#pragma GCC unroll 16
    for (int s = 0; s < kStrips; ++s) {
      const std::int64_t at = column + s * kLanes;
      const std::int64_t needed =
          std::min<std::int64_t>(kLanes, strips_.columns - (strip + s) * kLanes);
      if (at < 0 || at + needed > g_.out_width) {
        keep_unseen<kTaps>(at, memory + s * kSums * kLanes, sum[s]);
      }
    }
    for_each_sum<kStrips, kTaps>([&](int s, int l, int p) {
      sum[s][l][p].store(memory + ((s * kLines + l) * kPhases + p) * kLanes);
    });
  }

  template <int kStrips, int kTaps, class F>
  static SAMEGRAD_INLINE void for_each_sum(const F& f) {
#pragma GCC unroll 16
    for (int s = 0; s < kStrips; ++s) {
#pragma GCC unroll 16
      for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 16
        for (int p = 0; p < kTaps; ++p) f(s, l, p);
      }
    }
  }

  template <int kStrips, int kTaps>
  SAMEGRAD_INLINE void add_channels(const T* line, const T* weights,
                                    Vec<T> (&sum)[kStrips][kLines][kTaps]) const {
    for (std::int64_t n = g_.out_channels; n > 0; --n, line += step_, weights += kSums) {
      Vec<T> value[kStrips];
#pragma GCC unroll 16
      for (int s = 0; s < kStrips; ++s) {
        // Many strips are not forced into registers, which are for the sums.
        const T* from = line + s * kLanes;
        value[s] = kStrips <= kLines * kTaps ? load_once(from) : Vec<T>::load(from);
      }
#pragma GCC unroll 16
      for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 16
        for (int p = 0; p < kTaps; ++p) {
          const Vec<T> weight(weights[l * kPhases + p]);
#pragma GCC unroll 16
          for (int s = 0; s < kStrips; ++s) sum[s][l][p] = fma(value[s], weight, sum[s][l][p]);
        }
      }
    }
  }

  // Lane i is at column `at` + i of the cotangent: where there is none, its old sum stays.
  template <int kTaps>
  SAMEGRAD_INLINE void keep_unseen(std::int64_t at, const T* old,
                                   Vec<T> (&sum)[kLines][kTaps]) const {
    const Mask<T> before = first_lanes<T>(std::clamp<std::int64_t>(-at, 0, kLanes));
    const Mask<T> within = first_lanes<T>(std::clamp<std::int64_t>(g_.out_width - at, 0, kLanes));
#pragma GCC unroll 16
    for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 16
      for (int p = 0; p < kTaps; ++p) {
        const Vec<T> stays = Vec<T>::load(old + (l * kPhases + p) * kLanes);
        sum[l][p] = select(before, stays, select(within, sum[l][p], stays));
      }
    }
  }

  // Finished sums become a line of the image, if there is such a line.
  void write(std::int64_t line, std::int64_t i) const {
    if (line < 0 || line >= g_.in_height) return;
    T* to = dx_ + line * g_.in_width;
    for (std::int64_t s = 0; s < strips_.count; ++s) {
      const T* sums = sums_ + (s * kLines + i) * kPhases * kLanes;
      const std::int64_t column = (strips_.first + s * kLanes) * kPhases - g_.pad_left;
      if constexpr (kPhases == 1) {
        store_some(Vec<T>::load(sums), to + column, g_.in_width - column);
      } else {
        T lanes[2 * kLanes];
        for (int j = 0; j < kLanes; ++j) {
          lanes[2 * j] = sums[j];
          lanes[2 * j + 1] = sums[kLanes + j];
        }
        const std::int64_t first = std::max<std::int64_t>(0, -column);
        const std::int64_t end = std::min<std::int64_t>(2 * kLanes, g_.in_width - column);
        std::copy(lanes + first, lanes + end, to + column + first);
      }
    }
  }

  // The sums that go on belong to lines further down in the window.
  void roll(std::int64_t stays) const {
    for (std::int64_t s = 0; s < strips_.count; ++s) {
      T* sums = sums_ + s * kSums * kLanes;
      const std::int64_t size = kPhases * kLanes, moved = stays * size;
      std::copy_backward(sums, sums + moved, sums + kSums * kLanes);
      std::fill(sums, sums + kSums * kLanes - moved, T(0));
    }
  }

  void clear_from(std::int64_t line) const {
    line = std::max<std::int64_t>(line, 0);
    if (line < g_.in_height) {
      std::fill_n(dx_ + line * g_.in_width, (g_.in_height - line) * g_.in_width, T(0));
    }
  }

  const WindowGeometry& g_;
  const Strips<T> strips_;
  const T* const weights_;
  T* const dx_;
  const std::int64_t step_, shifts_;
  T *sums_, *line_;
};

template <class T, int kPhases>
void run_one_channel(const WindowGeometry& g, const T* dy, const T* weights, T* dx, void* scratch) {
  switch (g.window_height) {
    case 2:
      return OneChannelGradient<T, 2, kPhases>(g, weights, dx, scratch).run(dy);
    case 3:
      return OneChannelGradient<T, 3, kPhases>(g, weights, dx, scratch).run(dy);
    case 4:
      return OneChannelGradient<T, 4, kPhases>(g, weights, dx, scratch).run(dy);
    default:
      return OneChannelGradient<T, 5, kPhases>(g, weights, dx, scratch).run(dy);
  }
}

template <class T>
void multiply_one_channel(const WindowGeometry& g, const T* dy, const T* weights, T* dx,
                          void* scratch) {
  if (g.stride_width == 1) return run_one_channel<T, 1>(g, dy, weights, dx, scratch);
  run_one_channel<T, 2>(g, dy, weights, dx, scratch);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
