#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/maths.h"
#include "kernels/philox.h"
#include "kernels/random_key.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

constexpr int kLanes = kPhiloxLanes;

// A key for one stream of one seed: unrelated for neighbouring streams.
std::uint64_t key_of(RandomKey key) {
  if (key.stream == kGivenKey) return key.seed;
  PhiloxBlock b{};
  b.word[0][0] = static_cast<std::uint32_t>(key.stream);
  b.word[1][0] = static_cast<std::uint32_t>(key.stream >> 32);
  b.word[2][0] = 0x73616d65u;  // rows are counted from the same words: keep apart
  b.word[3][0] = 0x67726164u;
  philox(b, key.seed);
  return b.word[0][0] | std::uint64_t{b.word[1][0]} << 32;
}

struct LanePosition {
  std::int64_t row, block;  // sixteen lanes of one block of a row, or the first lanes of many rows
};

// Lane i counts place(i); a further attempt is a further counter.
template <class PlaceOf>
SAMEGRAD_INLINE void draw_words(std::uint64_t key, std::uint32_t attempt, PlaceOf place_of,
                                PhiloxBlock& b) {
  for (int i = 0; i < kLanes; ++i) {
    const LanePosition place = place_of(i);
    b.word[0][i] = static_cast<std::uint32_t>(place.block);
    b.word[1][i] = static_cast<std::uint32_t>(place.block >> 32) | attempt << 16;
    b.word[2][i] = static_cast<std::uint32_t>(place.row);
    b.word[3][i] = static_cast<std::uint32_t>(place.row >> 32);
  }
  philox(b, key);
}

// [0, 1) from the upper bits of one word (float32) or two (float64).
SAMEGRAD_INLINE float unit_of(float, const PhiloxBlock& b, std::int64_t part, int i) {
  return static_cast<float>(static_cast<std::int32_t>(b.word[part][i] >> 8)) * 0x1p-24f;
}
SAMEGRAD_INLINE double unit_of(double, const PhiloxBlock& b, std::int64_t part, int i) {
  const double high = static_cast<std::int32_t>(b.word[2 * part][i] >> 5);
  const double low = static_cast<std::int32_t>(b.word[2 * part + 1][i] >> 6);
  return (high * 0x1p26 + low) * 0x1p-53;
}
// (0, 1], for the logarithm: with more bits near 0, where they count.
SAMEGRAD_INLINE float positive_unit_of(float, const PhiloxBlock& b, std::int64_t part, int i) {
  const float high = static_cast<float>(static_cast<std::int32_t>(b.word[part][i] >> 1));
  return (high + 0.5f) * 0x1p-31f;
}
SAMEGRAD_INLINE double positive_unit_of(double kind, const PhiloxBlock& b, std::int64_t part,
                                        int i) {
  return unit_of(kind, b, part, i) + 0x1p-54;
}

// A distribution turns the words of a block into kPerBlock elements. Element 16 p + i depends on
// lane i alone.
template <class T>
struct Uniform {
  using Element = T;
  static constexpr int kPerBlock = kLanes * 16 / static_cast<int>(sizeof(T));
  SAMEGRAD_INLINE bool fill(const PhiloxBlock& b, T* y, std::uint32_t) const {
    for (int part = 0; part < kPerBlock / kLanes; ++part) {
      for (int i = 0; i < kLanes; ++i) y[part * kLanes + i] = unit_of(T(), b, part, i);
    }
    return true;
  }
};

// Box-Muller: two uniform numbers make two normal ones.
template <class T>
SAMEGRAD_INLINE void box_muller(T* first, T* second) {
  using V = Vec<T>;
  for (int i = 0; i < kLanes; i += V::kLanes) {
    const V radius = sqrt(V(T(-2)) * log(V::load(first + i)));
    const Reduced<T> angle = reduce_angle(V(T(6.283185307179586)) * V::load(second + i));
    (radius * sine_after(angle, Bits<T>(1))).store(first + i);
    (radius * sine_after(angle, Bits<T>(0))).store(second + i);
  }
}
template <class T>
struct Normal {
  using Element = T;
  static constexpr int kPerBlock = Uniform<T>::kPerBlock;
  SAMEGRAD_INLINE bool fill(const PhiloxBlock& b, T* y, std::uint32_t) const {
    for (int part = 0; part < kPerBlock / kLanes; part += 2) {
      T* first = y + part * kLanes;
      T* second = first + kLanes;
      for (int i = 0; i < kLanes; ++i) {
        first[i] = positive_unit_of(T(), b, part, i);
        second[i] = unit_of(T(), b, part + 1, i);
      }
      box_muller(first, second);
    }
    return true;
  }
};
// Elements beyond two deviations wait for the next attempt; false while there are any.
template <class T>
struct TruncatedNormal {
  using Element = T;
  static constexpr int kPerBlock = Normal<T>::kPerBlock;
  SAMEGRAD_INLINE bool fill(const PhiloxBlock& b, T* y, std::uint32_t attempt) const {
    T next[kPerBlock];
    Normal<T>().fill(b, next, attempt);
    bool done = true;
    for (int i = 0; i < kPerBlock; ++i) {
      y[i] = attempt == 0 || std::abs(y[i]) > T(2) ? next[i] : y[i];
      done &= std::abs(y[i]) <= T(2);
    }
    return done;
  }
};
// low + floor(u * size) with 64 bits of u: the bias is below size / 2^64. A size of 0 is 2^64.
template <class T>
struct Integers {
  using Element = T;
  static constexpr int kPerBlock = 2 * kLanes;
  std::int64_t low;
  std::uint64_t size;
  SAMEGRAD_INLINE bool fill(const PhiloxBlock& b, T* y, std::uint32_t) const {
    for (int k = 0; k < kPerBlock; ++k) {
      const std::int64_t part = k / kLanes;
      const int i = k % kLanes;
      const std::uint64_t bits = b.word[2 * part][i] | std::uint64_t{b.word[2 * part + 1][i]} << 32;
      const auto scaled = static_cast<unsigned __int128>(bits) * size;
      const auto offset = size ? static_cast<std::uint64_t>(scaled >> 64) : bits;
      y[k] = static_cast<T>(static_cast<std::uint64_t>(low) + offset);
    }
    return true;
  }
};

template <class D, class PlaceOf>
SAMEGRAD_INLINE void draw_block(const D& distribution, std::uint64_t key, PlaceOf place_of,
                                typename D::Element* y) {
  PhiloxBlock b;
  for (std::uint32_t attempt = 0; attempt < 0x10000u; ++attempt) {
    draw_words(key, attempt, place_of, b);
    if (distribution.fill(b, y, attempt)) return;
  }
}

// Short rows: the lanes of a block go to the elements of several rows.
template <class D, class T>
void draw_short_rows(const D& distribution, std::uint64_t key, std::int64_t first_row,
                     std::int64_t rows, std::int64_t n, T* y) {
  T block[D::kPerBlock];
  std::int64_t row = first_row, column = 0;
  for (std::int64_t start = 0; start < rows * n; start += kLanes) {
    LanePosition places[kLanes];
    for (LanePosition& place : places) {
      place = {row, column};
      if (++column == n) ++row, column = 0;
    }
    draw_block(
        distribution, key, [&](int i) { return places[i]; }, block);
    std::copy_n(block, std::min<std::int64_t>(kLanes, rows * n - start), y + start);
  }
}

template <class D>
void draw_rows(const D& distribution, RandomKey stream, std::int64_t first_row, std::int64_t rows,
               std::int64_t n, void* y) {
  using T = typename D::Element;
  const std::uint64_t key = key_of(stream);
  T* to = static_cast<T*>(y);
  if (n <= 0) return;
  if (n <= kLanes) return draw_short_rows(distribution, key, first_row, rows, n, to);
  T block[D::kPerBlock];
  for (std::int64_t row = first_row; row < first_row + rows; ++row) {
    for (std::int64_t start = 0; start < n; start += D::kPerBlock) {
      const std::int64_t first_block = start / D::kPerBlock * kLanes;
      const auto place_of = [&](int i) { return LanePosition{row, first_block + i}; };
      draw_block(distribution, key, place_of, block);
      const std::int64_t count = std::min<std::int64_t>(D::kPerBlock, n - start);
      std::memcpy(to, block, static_cast<std::size_t>(count) * sizeof(T));
      to += count;
    }
  }
}

// Whole blocks of a row but for what is before `first` and behind first + n.
template <class D>
void draw_part(const D& distribution, RandomKey stream, std::int64_t row, std::int64_t first,
               std::int64_t n, void* y) {
  using T = typename D::Element;
  const std::uint64_t key = key_of(stream);
  T* to = static_cast<T*>(y);
  T block[D::kPerBlock];
  for (std::int64_t end = first + n; first < end;) {
    const std::int64_t before = first % D::kPerBlock;
    const std::int64_t first_block = first / D::kPerBlock * kLanes;
    const auto place_of = [&](int i) { return LanePosition{row, first_block + i}; };
    draw_block(distribution, key, place_of, block);
    const std::int64_t count = std::min<std::int64_t>(D::kPerBlock - before, end - first);
    std::memcpy(to, block + before, static_cast<std::size_t>(count) * sizeof(T));
    to += count;
    first += count;
  }
}

template <class T>
void random_integers(RandomKey key, std::int64_t first_row, std::int64_t rows, std::int64_t n,
                     std::int64_t low, std::int64_t high, void* y) {
  const std::uint64_t size = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  draw_rows(Integers<T>{low, size}, key, first_row, rows, n, y);
}

template <class T>
constexpr RandomKernels kKernels = {
    .uniform = [](RandomKey key, std::int64_t first_row, std::int64_t rows, std::int64_t n,
                  void* y) { draw_rows(Uniform<T>(), key, first_row, rows, n, y); },
    .normal = [](RandomKey key, std::int64_t first_row, std::int64_t rows, std::int64_t n,
                 void* y) { draw_rows(Normal<T>(), key, first_row, rows, n, y); },
    .truncated_normal =
        [](RandomKey key, std::int64_t first_row, std::int64_t rows, std::int64_t n, void* y) {
          draw_rows(TruncatedNormal<T>(), key, first_row, rows, n, y);
        },
    .uniform_part = [](RandomKey key, std::int64_t row, std::int64_t first, std::int64_t n,
                       void* y) { draw_part(Uniform<T>(), key, row, first, n, y); },
};

}  // namespace

const RandomKernels* random_kernel(DType dtype) {
  return kernel_for<samegrad::kFloats & kComputed>(dtype, []<class T>() { return &kKernels<T>; });
}

RandomIntegersKernel random_integers_kernel(DType dtype) {
  constexpr DTypes kDrawn = kIndices | bit_of(DType::kUInt32) | bit_of(DType::kUInt64);
  return kernel_for<kDrawn>(dtype,
                            []<class T>() -> RandomIntegersKernel { return random_integers<T>; });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
