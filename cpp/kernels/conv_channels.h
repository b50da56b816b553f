// Products of channels that do not see each other, as in depthwise convolutions: each column of the
// result is a chain over its own column of A and B, so the columns are the lanes of registers.
#pragma once

#include "kernels/gemm.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// kRows rows of kVectors registers of columns; kPart: one register of `left` columns.
template <class T, int kRows, int kVectors, bool kPart>
class ChannelTile {
 public:
  static void run(const Gemm<T>& product, std::int64_t row, std::int64_t column,
                  std::int64_t left) {
    ChannelTile t{product, row, column, left};
    t.start();
    t.contract();
    t.finish();
  }

 private:
  static constexpr int kSize = Vec<T>::kLanes;

  ChannelTile(const Gemm<T>& product, std::int64_t row, std::int64_t column, std::int64_t left)
      : product_(product), row_(row), column_(column), left_(left) {}

  SAMEGRAD_INLINE Vec<T> load(const T* from) const {
    if constexpr (kPart) return load_partial(from, left_, T(0));
    return Vec<T>::load(from);
  }

  SAMEGRAD_INLINE void start() {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) {
        sum_[r][j] = product_.accumulate
                         ? load(product_.y[row_ + r] + column_ + std::int64_t{j} * kSize)
                         : Vec<T>(T(0));
      }
    }
  }

  SAMEGRAD_INLINE void contract() {
    const std::int64_t b_step = product_.b.row_step;
    const T* a[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) a[r] = product_.a[row_ + r] + column_;
    const T* b = product_.b.data + product_.b_first_row * b_step + column_;
    for_each_product(product_.walk, b, b_step,
                     [&](std::int64_t at, const T* factors) { add_products(a, at, factors); });
  }

  SAMEGRAD_INLINE void add_products(const T* const (&a)[kRows], std::int64_t at, const T* b) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) {
      const Vec<T> factor = load(b + j * kSize);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        sum_[r][j] = fma(load(a[r] + at + j * kSize), factor, sum_[r][j]);
      }
    }
  }

  SAMEGRAD_INLINE void finish() {
    const Vec<T> zero = T(0);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) {
        const std::int64_t at = column_ + std::int64_t{j} * kSize;
        Vec<T> sum = sum_[r][j];
        if (product_.bias != nullptr) sum = sum + load(product_.bias + at);
        if (product_.activation == Activation::kRelu) sum = select(zero > sum, zero, sum);
        T* to = product_.y[row_ + r] + at;
        if constexpr (kPart) {
          store_partial(sum, to, left_);
        } else {
          sum.store(to);
        }
      }
    }
  }

  const Gemm<T>& product_;
  const std::int64_t row_, column_, left_;
  Vec<T> sum_[kRows][kVectors];
};

// Rows of so many registers from this column on: as many side by side as hide the time of a sum.
template <class T, int kVectors, bool kPart>
void multiply_channel_rows(const Gemm<T>& product, std::int64_t column, std::int64_t left) {
  constexpr int kMany = 8 / kVectors;
  std::int64_t row = 0;
  for (; row + kMany <= product.rows; row += kMany) {
    ChannelTile<T, kMany, kVectors, kPart>::run(product, row, column, left);
  }
  for (; row < product.rows; ++row) {
    ChannelTile<T, 1, kVectors, kPart>::run(product, row, column, left);
  }
}

template <class T>
void multiply_channels(const Gemm<T>& product) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  const std::int64_t columns = product.b.columns;
  std::int64_t column = 0;
  for (; column + 4 * kLanes <= columns; column += 4 * kLanes) {
    multiply_channel_rows<T, 4, false>(product, column, kLanes);
  }
  for (; column + kLanes <= columns; column += kLanes) {
    multiply_channel_rows<T, 1, false>(product, column, kLanes);
  }
  if (column < columns) multiply_channel_rows<T, 1, true>(product, column, columns - column);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
