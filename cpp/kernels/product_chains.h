// Contractions longer than a chain: chains of kContractionBlock products, joined by halving.
#pragma once

#include <cstdlib>
#include <new>

#include "base/order.h"
#include "kernels/product_multiply.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// y = y + x, rows of `columns` elements.
template <class T>
void add_rows(T* const* y, const T* const* x, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; c += Vec<T>::kLanes) {
      const std::int64_t left = columns - c;
      store_some(load_some(y[r] + c, left, T(0)) + load_some(x[r] + c, left, T(0)), y[r] + c, left);
    }
  }
}

// What comes after the sums of a row: activation(y + bias).
template <class T>
void finish_row(T* y, std::int64_t columns, const T* bias, Activation activation) {
  const Vec<T> zero = T(0);
  for (std::int64_t c = 0; c < columns; c += Vec<T>::kLanes) {
    const std::int64_t left = columns - c;
    Vec<T> sum = load_some(y + c, left, T(0));
    if (bias != nullptr) sum = sum + load_some(bias + c, left, T(0));
    if (activation == Activation::kRelu) sum = select(zero > sum, zero, sum);
    store_some(sum, y + c, left);
  }
}

// The rows of partial sums: level 0 is the result itself, or what is added to it.
template <class T>
class ChainLevels {
 public:
  ChainLevels(T* const* y, std::int64_t rows, std::int64_t columns, int levels, bool accumulate)
      : y_(y), rows_(rows), columns_(columns), first_(accumulate ? 0 : 1) {
    const auto bytes = static_cast<std::size_t>((levels - first_) * rows * columns) * sizeof(T);
    memory_ = static_cast<T*>(std::malloc(bytes > 0 ? bytes : 1));
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  ~ChainLevels() { std::free(memory_); }
  ChainLevels(const ChainLevels&) = delete;
  ChainLevels& operator=(const ChainLevels&) = delete;

  void rows_of(int level, T** to) const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      to[r] = level < first_ ? y_[r] : memory_ + ((level - first_) * rows_ + r) * columns_;
    }
  }
  void add(int level) const {
    T *to[kMostRows], *from[kMostRows];
    rows_of(level, to);
    rows_of(level + 1, from);
    add_rows<T>(to, from, rows_, columns_);
  }
  void add_to_result() const {
    T* from[kMostRows];
    rows_of(0, from);
    if (first_ == 0) add_rows<T>(y_, from, rows_, columns_);
  }

 private:
  T* const* y_;
  std::int64_t rows_, columns_;
  int first_;
  T* memory_;
};

// The sums of a contraction, from chains of its products: chain(first, count, level) makes the sums
// of some at a level, levels.add(level) adds those of the next level to them.
template <class Levels, class Chain>
void join_some(const Levels& levels, int level, std::int64_t first, std::int64_t products,
               const Chain& chain) {
  if (products <= kContractionBlock) return chain(first, products, level);
  const std::int64_t blocks = (products + kContractionBlock - 1) / kContractionBlock;
  const std::int64_t half = tree_split(blocks) * kContractionBlock;
  join_some(levels, level, first, half, chain);
  join_some(levels, level + 1, first + half, products - half, chain);
  levels.add(level);
}

// How many levels join_some needs, the first one included.
inline int chain_levels(std::int64_t products) {
  int levels = 1;
  for (std::int64_t n = products; n > kContractionBlock; ++levels) {
    n = tree_split((n + kContractionBlock - 1) / kContractionBlock) * kContractionBlock;
  }
  return levels;
}

// At most kMostRows rows of y from chains of their products: chain(first, count, to) writes one.
template <class T, class Chain>
void join_chains(T* const* y, std::int64_t rows, std::int64_t columns, std::int64_t products,
                 bool accumulate, const Chain& chain) {
  const ChainLevels<T> levels(y, rows, columns, chain_levels(products), accumulate);
  join_some(levels, 0, 0, products, [&](std::int64_t first, std::int64_t count, int level) {
    T* to[kMostRows];
    levels.rows_of(level, to);
    chain(first, count, to);
  });
  levels.add_to_result();
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
