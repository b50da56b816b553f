// The micro kernel: a tile of Y stays in registers over the whole contraction.
//
// Each element is one chain of fused multiply-adds in the order of the walk (a multiplication and
// an addition without FMA), whatever the size of the tile: tiles are chosen for speed alone.
#pragma once

#include "kernels/gemm.h"

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
  // `tiles` of them, one below the other.
  static void run(const Tile<T>& tile, std::int64_t tiles, const Gemm<T>& product) {
    const Steps steps(tile, product.walk);
    const bool ahead = product.walk.length >= kLongWalk;
    const T* const* a = tile.a;
    T* const* y = tile.y;
    for (; tiles > 0; --tiles, a += kRows, y += kRows) {
      TileProduct t;
      if (product.prefetch != nullptr) product.prefetch->fetch(product.prefetch_lines);
      if (product.accumulate) {
        t.load(y, tile.first_column);
        if (ahead && tiles > 1) prefetch(y + kRows, tile.first_column);
      } else {
        t.clear();
      }
      t.contract(a, tile.b, steps);
      if (tile.bias != nullptr) t.add_bias(tile.bias);
      if (product.activation == Activation::kRelu) t.relu();
      t.store(y, tile.first_column);
    }
  }

 private:
  static constexpr int kSize = Vec<T>::kLanes;
  static constexpr int kWidth = kPanels * kVectors;
  static constexpr int kColumns = kWidth * kSize;
  // From here on the fetching of sums costs little beside the products.
  static constexpr std::int64_t kLongWalk = 64;

  SAMEGRAD_INLINE void clear() {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kWidth; ++j) sum_[r][j] = Vec<T>(T(0));
    }
  }

  SAMEGRAD_INLINE void load(T* const* y, std::int64_t first_column) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const T* row = y[r] + first_column;
#pragma GCC unroll 16
      for (int j = 0; j < kWidth; ++j) {
        sum_[r][j] = Vec<T>::load(row + j * kSize);
      }
    }
  }

  // The sums of the next tile, which nothing else would fetch before they are waited for.
  static SAMEGRAD_INLINE void prefetch(T* const* y, std::int64_t first_column) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kColumns; j += 64 / static_cast<int>(sizeof(T))) {
        __builtin_prefetch(y[r] + first_column + j, 1);
      }
    }
  }

  SAMEGRAD_INLINE void store(T* const* y, std::int64_t first_column) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      T* row = y[r] + first_column;
#pragma GCC unroll 16
      for (int j = 0; j < kWidth; ++j) sum_[r][j].store(row + j * kSize);
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

  // The walk with B in elements, and steps that lead from the end of a segment to the next one.
  struct Steps {
    Steps(const Tile<T>& tile, const AccessPattern& w)
        : outer(w.outer),
          inner(w.inner),
          length(w.length),
          a_step(w.a_step),
          b_step(tile.row_step),
          panel_step(kPanels > 1 ? tile.panel_step : 0),
          a_inner(w.a_inner - w.length * w.a_step),
          b_inner((w.b_inner - w.length) * tile.row_step),
          a_outer(w.a_outer - w.inner * w.a_inner),
          b_outer((w.b_outer - w.inner * w.b_inner) * tile.row_step) {}
    std::int64_t outer, inner, length, a_step, b_step, panel_step;
    std::int64_t a_inner, b_inner, a_outer, b_outer;
  };

  SAMEGRAD_INLINE void contract(const T* const* rows, const T* b, const Steps& steps) {
    const T* a[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) a[r] = rows[r];
    std::int64_t at = 0;
    for (std::int64_t o = steps.outer; o > 0; --o) {
      for (std::int64_t i = steps.inner; i > 0; --i) {
        for (std::int64_t p = steps.length; p > 0; --p) {
          add_products(a, at, b, steps.panel_step);
          at += steps.a_step;
          b += steps.b_step;
        }
        at += steps.a_inner;
        b += steps.b_inner;
      }
      at += steps.a_outer;
      b += steps.b_outer;
    }
  }

  SAMEGRAD_INLINE void add_products(const T* const (&a)[kRows], std::int64_t at, const T* b,
                                    std::int64_t panel_step) {
    Vec<T> values[kWidth];
#pragma GCC unroll 16
    for (int j = 0; j < kWidth; ++j) {
      values[j] = Vec<T>::load(b + (j / kVectors) * panel_step + (j % kVectors) * kSize);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec<T> factor = Vec<T>(a[r][at]);
#pragma GCC unroll 16
      for (int j = 0; j < kWidth; ++j) sum_[r][j] = fma(factor, values[j], sum_[r][j]);
    }
  }

  Vec<T> sum_[kRows][kWidth];
};

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
