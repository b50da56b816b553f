// The micro kernel: a tile of Y stays in registers over the whole contraction.
//
// Each element is one chain of fused multiply-adds in the order of the walk (a multiplication and
// an addition without FMA), whatever the size of the tile: tiles are chosen for speed alone.
#pragma once

#include "kernels/product_multiply.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
struct Tile {
  const T* const* a;
  T* const* y;
  const T* b;
  std::int64_t panel_step;
  std::int64_t row_step;
  std::int64_t first_column;
  const T* bias;  // for the tile's full width, or null
};

// The accumulators of kRows rows by kPanels panels of kVectors vectors.
template <class T, int kRows, int kPanels, int kVectors>
class TileProduct {
 public:
  static void run(const Tile<T>& tile, const Product<T>& product) {
    TileProduct t;
    if (product.accumulate) {
      t.load(tile);
    } else {
      t.clear();
    }
    t.contract(tile, product.walk);
    if (tile.bias != nullptr) t.add_bias(tile.bias);
    if (product.activation == Activation::kRelu) t.relu();
    t.store(tile);
  }

 private:
  static constexpr int kSize = Vec<T>::kLanes;
  static constexpr int kWidth = kPanels * kVectors;
  static constexpr int kColumns = kWidth * kSize;

  SAMEGRAD_INLINE void clear() {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kWidth; ++j) sum_[r][j] = Vec<T>(T(0));
    }
  }

  SAMEGRAD_INLINE void load(const Tile<T>& tile) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const T* y = tile.y[r] + tile.first_column;
#pragma GCC unroll 16
      for (int j = 0; j < kWidth; ++j) {
        sum_[r][j] = Vec<T>::load(y + j * kSize);
      }
    }
  }

  SAMEGRAD_INLINE void store(const Tile<T>& tile) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      T* y = tile.y[r] + tile.first_column;
#pragma GCC unroll 16
      for (int j = 0; j < kWidth; ++j) sum_[r][j].store(y + j * kSize);
    }
  }

  SAMEGRAD_INLINE void add_bias(const T* bias) {
#pragma GCC unroll 16
    for (int j = 0; j < kWidth; ++j) {
      const Vec<T> b = Vec<T>::load(bias + j * kSize);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) sum_[r][j] = sum_[r][j] + b;
    }
  }

  // Keeps NaN and -0, as the elementwise relu does.
  SAMEGRAD_INLINE void relu() {
    const Vec<T> zero = Vec<T>(T(0));
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kWidth; ++j) {
        sum_[r][j] = select(zero > sum_[r][j], zero, sum_[r][j]);
      }
    }
  }

  SAMEGRAD_INLINE void contract(const Tile<T>& tile, const Walk& walk) {
    const T* a[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) a[r] = tile.a[r];
    const T* b_outer = tile.b;
    std::int64_t a_outer = 0;
    for (std::int64_t o = 0; o < walk.outer; ++o) {
      const T* b_inner = b_outer;
      std::int64_t a_inner = a_outer;
      for (std::int64_t i = 0; i < walk.inner; ++i) {
        segment(a, a_inner, walk.a_step, walk.length, b_inner, tile);
        a_inner += walk.a_inner;
        b_inner += walk.b_inner * tile.row_step;
      }
      a_outer += walk.a_outer;
      b_outer += walk.b_outer * tile.row_step;
    }
  }

  SAMEGRAD_INLINE void segment(const T* const (&a)[kRows], std::int64_t at, std::int64_t a_step,
                               std::int64_t length, const T* b, const Tile<T>& tile) {
    const std::int64_t row_step = tile.row_step;
    const std::int64_t panel_step = kPanels > 1 ? tile.panel_step : 0;
    for (std::int64_t p = 0; p < length; ++p) {
      Vec<T> values[kWidth];
#pragma GCC unroll 16
      for (int j = 0; j < kWidth; ++j) {
        const T* panel = b + (j / kVectors) * panel_step;
        values[j] = Vec<T>::load(panel + (j % kVectors) * kSize);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vec<T> factor = Vec<T>(a[r][at]);
#pragma GCC unroll 16
        for (int j = 0; j < kWidth; ++j) {
          sum_[r][j] = fma(factor, values[j], sum_[r][j]);
        }
      }
      at += a_step;
      b += row_step;
    }
  }

  Vec<T> sum_[kRows][kWidth];
};

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
