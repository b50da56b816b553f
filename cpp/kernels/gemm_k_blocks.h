// Contractions longer than a chain: chains of kContractionBlock products, joined by halving.
#pragma once

#include <algorithm>

#include "base/reduction_order.h"
#include "kernels/gemm.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// y = y + x, rows of `columns` elements.
template <class T>
void add_rows(T* const* y, const T* const* x, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; c += Vec<T>::kLanes) {
      const std::int64_t left = columns - c;
      store_n(load_n(y[r] + c, left, T(0)) + load_n(x[r] + c, left, T(0)), y[r] + c, left);
    }
  }
}

// Applies the epilogue of a row: activation(y + bias).
template <class T>
void finish_row(T* y, std::int64_t columns, const T* bias, Activation activation) {
  const Vec<T> zero = T(0);
  for (std::int64_t c = 0; c < columns; c += Vec<T>::kLanes) {
    const std::int64_t left = columns - c;
    Vec<T> sum = load_n(y + c, left, T(0));
    if (bias != nullptr) sum = sum + load_n(bias + c, left, T(0));
    if (activation == Activation::kRelu) sum = select(zero > sum, zero, sum);
    store_n(sum, y + c, left);
  }
}

// A block of a result, whose partial sums of all levels fit on the stack.
struct ChainBlock {
  std::int64_t row = 0, column = 0;
  std::int64_t rows = 0, columns = 0;
};

// The rows of partial sums: level 0 is the result itself, or what is added to it.
template <class T>
class ChainLevels {
 public:
  static constexpr std::int64_t kElements = (128 << 10) / sizeof(T);

  // y: where each row of the block begins.
  ChainLevels(T* const* y, const ChainBlock& block, bool accumulate)
      : y_(y), rows_(block.rows), columns_(block.columns), first_(accumulate ? 0 : 1) {}
  ChainLevels(const ChainLevels&) = delete;
  ChainLevels& operator=(const ChainLevels&) = delete;

  void rows_of(int level, T** to) {
    for (std::int64_t r = 0; r < rows_; ++r) {
      to[r] = level < first_ ? y_[r] : memory_ + ((level - first_) * rows_ + r) * columns_;
    }
  }
  void add(int level) {
    T *to[kMaxRows], *from[kMaxRows];
    rows_of(level, to);
    rows_of(level + 1, from);
    add_rows<T>(to, from, rows_, columns_);
  }
  void add_to_result() {
    T* from[kMaxRows];
    rows_of(0, from);
    if (first_ == 0) add_rows<T>(y_, from, rows_, columns_);
  }

 private:
  T* const* y_;
  std::int64_t rows_, columns_;
  int first_;
  alignas(64) T memory_[kElements];
};

// At most kMaxRows rows of y from chains of their products, block by block: chain(block, first,
// count, to) writes one.
template <class T, class Chain>
void join_chains(T* const* y, std::int64_t rows, std::int64_t columns, std::int64_t products,
                 bool accumulate, const Chain& chain) {
  constexpr std::int64_t kWide = kPanelColumns<T>;
  const std::int64_t of_level = ChainLevels<T>::kElements / kContractionTree.levels(products);
  const std::int64_t most_rows = std::min(rows, of_level / kWide);
  const std::int64_t most_columns = of_level / most_rows / kWide * kWide;
  for (std::int64_t r = 0; r < rows; r += most_rows) {
    for (std::int64_t c = 0; c < columns; c += most_columns) {
      const ChainBlock block{r, c, std::min(most_rows, rows - r),
                             std::min(most_columns, columns - c)};
      T* results[kMaxRows];
      for (std::int64_t i = 0; i < block.rows; ++i) results[i] = y[r + i] + c;
      ChainLevels<T> levels(results, block, accumulate);
      walk_tree(
          kContractionTree, TreeRange{0, products},
          [&](TreeRange of, int level) {
            T* to[kMaxRows];
            levels.rows_of(level, to);
            chain(block, of.begin, of.size(), to);
          },
          [&](int level) { levels.add(level); });
      levels.add_to_result();
    }
  }
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
