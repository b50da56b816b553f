#include <algorithm>
#include <cstring>

#include "kernels/lanes.h"
#include "kernels/window_argmax.h"
#include "kernels/window_range.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// f(start, count) for the registers of a pixel's channels; count < kLanes only for the last.
template <class T, class F>
SAMEGRAD_INLINE void for_each_channel(std::int64_t channels, F f) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  std::int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) f(c, kLanes);
  if (c < channels) f(c, channels - c);
}

// The first maximum so far and its place; NaN is the largest.
template <class T>
struct Best {
  Vec<T> value = kLeast<T>;
  Places<T> place = {};

  SAMEGRAD_INLINE void consider(Vec<T> x, std::int64_t at) {
    const Mask<T> wins = ~(value >= x) & (value == value);
    value = select(wins, x, value);
    place = wins.raw ? Places<T>{} + static_cast<Bits<T>>(at) : place;
  }
};

// f(offset of the first of four inputs, offset of the output, count of channels), for each output.
template <class T, class F>
SAMEGRAD_INLINE void for_each_tile(const WindowGeometry& g, F f) {
  const std::int64_t channels = g.in_channels;
  for (std::int64_t row = 0; row < g.out_height; ++row) {
    std::int64_t in = 2 * row * g.in_width * channels;
    std::int64_t out = row * g.out_width * channels;
    for (std::int64_t column = 0; column < g.out_width; ++column) {
      for_each_channel<T>(channels,
                          [&](std::int64_t c, std::int64_t count) { f(in + c, out + c, count); });
      in += 2 * channels, out += channels;
    }
  }
}

template <class T>
void max_pool_tiles(const WindowGeometry& g, const T* x, T* y, std::uint8_t* index) {
  const std::int64_t right = g.in_channels, below = g.in_width * g.in_channels;
  for_each_tile<T>(g, [&](std::int64_t in, std::int64_t out, std::int64_t count) {
    const T* from = x + in;
    Best<T> best{.value = load_n(from, count, kLeast<T>)};
    best.consider(load_n(from + right, count, kLeast<T>), 1);
    best.consider(load_n(from + below, count, kLeast<T>), 2);
    best.consider(load_n(from + below + right, count, kLeast<T>), 3);
    store_n(best.value, y + out, count);
    store_places<T>(best.place, index + out, count);
  });
}

// Each input belongs to one window or, in an odd last row or column, to none.
template <class T>
void max_pool_grad_tiles(const WindowGeometry& g, const T* dy, const std::uint8_t* index, T* dx) {
  const std::int64_t right = g.in_channels, below = g.in_width * g.in_channels;
  for_each_tile<T>(g, [&](std::int64_t in, std::int64_t out, std::int64_t count) {
    const Vec<T> gradient = load_n(dy + out, count, T(0));
    const Places<T> place = load_places<T>(index + out, count);
    T* const at[] = {dx + in, dx + in + right, dx + in + below, dx + in + below + right};
    for (int tap = 0; tap < 4; ++tap) {
      const Mask<T> chosen = {place == tap};
      store_n(select(chosen, gradient, T(0)), at[tap], count);
    }
  });
  const std::int64_t used = 2 * g.out_width * right;
  for (std::int64_t row = 0; used < below && row < 2 * g.out_height; ++row) {
    std::fill(dx + row * below + used, dx + (row + 1) * below, T(0));
  }
  std::fill(dx + 2 * g.out_height * below, dx + g.in_size(), T(0));
}

template <class T>
void max_pool(const WindowGeometry& g, const void* x, void* y, std::uint8_t* index) {
  const std::int64_t channels = g.in_channels;
  const T* image = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  if (g.tiled_by_two()) return max_pool_tiles(g, image, to, index);
  for_each_window(g, [&](const WindowRange& w) {
    for_each_channel<T>(channels, [&](std::int64_t c, std::int64_t count) {
      Best<T> best;
      for_each_tap(g, w, [&](std::int64_t pixel, std::int64_t tap) {
        best.consider(load_n(image + pixel * channels + c, count, kLeast<T>), tap);
      });
      store_n(best.value, to + c, count);
      store_places<T>(best.place, index + c, count);
    });
    to += channels;
    index += channels;
  });
}

template <class T>
void max_pool_grad(const WindowGeometry& g, const void* dy, const std::uint8_t* index, void* dx) {
  const std::int64_t channels = g.in_channels;
  const T* from = static_cast<const T*>(dy);
  T* image = static_cast<T*>(dx);
  if (g.tiled_by_two()) return max_pool_grad_tiles(g, from, index, image);
  std::memset(dx, 0, static_cast<std::size_t>(g.in_size()) * sizeof(T));
  for_each_window(g, [&](const WindowRange& w) {
    for_each_channel<T>(channels, [&](std::int64_t c, std::int64_t count) {
      const Vec<T> gradient = load_n(from + c, count, T(0));
      const Places<T> place = load_places<T>(index + c, count);
      for_each_tap(g, w, [&](std::int64_t pixel, std::int64_t tap) {
        const Mask<T> chosen = {place == static_cast<Bits<T>>(tap)};
        T* at = image + pixel * channels + c;
        const Vec<T> sum = load_n(at, count, T(0)) + gradient;
        store_n(select(chosen, sum, load_n(at, count, T(0))), at, count);
      });
    });
    from += channels;
    index += channels;
  });
}

// The taps of a window, counted along its rows, in blocks.
template <class T>
Vec<T> sum_of_taps(const WindowGeometry& g, const WindowRange& w, const T* x, std::int64_t count) {
  const std::int64_t width = w.end_column - w.first_column;
  const auto block = [&](TreeRange taps) {
    Vec<T> sum = T(0);
    for (std::int64_t tap = taps.begin; tap < taps.end; ++tap) {
      const std::int64_t row = w.first_row + tap / width, column = w.first_column + tap % width;
      const std::int64_t pixel = pixel_of_tap(g, w.first_pixel, row, column);
      sum = sum + load_n(x + pixel * g.in_channels, count, T(0));
    }
    return sum;
  };
  return reduce_tree(kColumnTree, TreeRange{0, w.size()}, block,
                     [](Vec<T> left, Vec<T> right) { return left + right; });
}

template <class T>
void avg_pool(const WindowGeometry& g, const void* x, void* y) {
  const std::int64_t channels = g.in_channels;
  const T* image = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  for_each_window(g, [&](const WindowRange& w) {
    for_each_channel<T>(channels, [&](std::int64_t c, std::int64_t count) {
      Vec<T> sum = T(0);
      if (w.size() > kColumnBlock) [[unlikely]] {
        sum = sum_of_taps(g, w, image + c, count);
      } else {
        for_each_tap(g, w, [&](std::int64_t pixel, std::int64_t) {
          sum = sum + load_n(image + pixel * channels + c, count, T(0));
        });
      }
      store_n(sum / Vec<T>(static_cast<T>(w.size())), to + c, count);
    });
    to += channels;
  });
}

template <class T>
void avg_pool_grad(const WindowGeometry& g, const void* dy, void* dx) {
  const std::int64_t channels = g.in_channels;
  const T* from = static_cast<const T*>(dy);
  T* image = static_cast<T*>(dx);
  std::memset(dx, 0, static_cast<std::size_t>(g.in_size()) * sizeof(T));
  for_each_window(g, [&](const WindowRange& w) {
    for_each_channel<T>(channels, [&](std::int64_t c, std::int64_t count) {
      const Vec<T> share = load_n(from + c, count, T(0)) / Vec<T>(static_cast<T>(w.size()));
      for_each_tap(g, w, [&](std::int64_t pixel, std::int64_t) {
        T* at = image + pixel * channels + c;
        store_n(load_n(at, count, T(0)) + share, at, count);
      });
    });
    from += channels;
  });
}

template <class T>
constexpr PoolKernels kKernels = {.max_pool = max_pool<T>,
                                  .max_pool_grad = max_pool_grad<T>,
                                  .avg_pool = avg_pool<T>,
                                  .avg_pool_grad = avg_pool_grad<T>};

}  // namespace

const PoolKernels* pool_kernel(DType dtype) {
  return kernel_for<samegrad::kFloats & kComputed>(dtype, []<class T>() { return &kKernels<T>; });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
