// A tile of a product by the tree over examples: the pieces of the tree that stay in registers.
#pragma once

#include <algorithm>

#include "base/reduction_order.h"
#include "kernels/gemm_pack.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

template <class T>
inline constexpr std::int64_t kTreeColumns = kTreeVectors* Vec<T>::kLanes;
constexpr int kMaxExamples = kLeafExamples << (kTreeLevels - 1);
constexpr Halving<> kPieceTree{kMaxExamples};

// The sums of kTreeRows rows by kTreeColumns columns, a panel.
template <class T>
struct TreeTile {
  Vec<T> sum[kTreeRows][kTreeVectors];

  SAMEGRAD_INLINE void clear() {
#pragma GCC unroll 16
    for (int r = 0; r < kTreeRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kTreeVectors; ++j) sum[r][j] = Vec<T>(T(0));
    }
  }

  SAMEGRAD_INLINE void add_products(const T* a, const T* b) {
    Vec<T> values[kTreeVectors];
#pragma GCC unroll 16
    for (int j = 0; j < kTreeVectors; ++j) values[j] = Vec<T>::load(b + j * Vec<T>::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kTreeRows; ++r) {
      const Vec<T> factor = Vec<T>(a[r]);
#pragma GCC unroll 16
      for (int j = 0; j < kTreeVectors; ++j) sum[r][j] = fma(factor, values[j], sum[r][j]);
    }
  }

  SAMEGRAD_INLINE void add_right(const TreeTile& right) {
#pragma GCC unroll 16
    for (int r = 0; r < kTreeRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kTreeVectors; ++j) sum[r][j] = sum[r][j] + right.sum[r][j];
    }
  }

  SAMEGRAD_INLINE void add_left(const T* left) {
#pragma GCC unroll 16
    for (int r = 0; r < kTreeRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kTreeVectors; ++j) {
        sum[r][j] = Vec<T>::load(left + (r * kTreeVectors + j) * Vec<T>::kLanes) + sum[r][j];
      }
    }
  }

  SAMEGRAD_INLINE void store(T* y, std::int64_t ldy) const {
#pragma GCC unroll 16
    for (int r = 0; r < kTreeRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kTreeVectors; ++j) sum[r][j].store(y + r * ldy + j * Vec<T>::kLanes);
    }
  }
};

template <class T>
inline constexpr std::int64_t kTileElements = kTreeRows* kTreeColumns<T>;

// The part of a tile in memory that belongs to the result. Where it is taken out of registers, the
// compiler gives all sums a place in memory, also on the way to whole tiles.
template <class T>
[[gnu::noinline]] void copy_part(const T* tile, T* y, std::int64_t ldy, std::int64_t rows,
                                 std::int64_t columns) {
  const std::int64_t wide = std::min(columns, kTreeColumns<T>);
  for (std::int64_t r = 0; r < rows && r < kTreeRows; ++r) {
    std::copy_n(tile + r * kTreeColumns<T>, wide, y + r * ldy);
  }
}

// The position of a tile in its operands, advanced by one row of the contraction at a time.
template <class T>
struct TreeCursor {
  const T* a;
  const T* b;

  SAMEGRAD_INLINE void multiply(TreeTile<T>& tile) {
    tile.add_products(a, b);
    a += kTreeRows;
    b += kTreeColumns<T>;
  }
};

// The sum of kExamples examples, which halving takes apart while compiling. kSingle: examples have
// one row each, so that the length of a leaf is known.
template <class T, int kExamples, bool kSingle>
SAMEGRAD_INLINE TreeTile<T> sum_examples(TreeCursor<T>& at, std::int64_t rows_per_example) {
  if constexpr (kExampleTree.is_leaf({0, kExamples})) {
    TreeTile<T> sum;
    sum.clear();
    if constexpr (kSingle) {
#pragma GCC unroll 16
      for (int i = 0; i < kExamples; ++i) at.multiply(sum);
    } else {
      for (std::int64_t i = kExamples * rows_per_example; i > 0; --i) at.multiply(sum);
    }
    return sum;
  } else {
    constexpr int kLeft = int(kExampleTree.left(kExamples));
    TreeTile<T> sum = sum_examples<T, kLeft, kSingle>(at, rows_per_example);
    sum.add_right(sum_examples<T, kExamples - kLeft, kSingle>(at, rows_per_example));
    return sum;
  }
}

// The destination of a piece's sum. `joins` sums on the stack to its left are added to it. The
// total is written to the stack or to the result.
template <class T>
struct Destination {
  T* top;  // of the stack
  int joins;
  T* y;  // null: the stack
  std::int64_t ldy, rows, columns;
};

template <class T>
using PieceFn = void (*)(TreeCursor<T>& at, std::int64_t rows_per_example,
                         const Destination<T>& to);

template <class T, int kExamples, bool kSingle>
void run_piece(TreeCursor<T>& at, std::int64_t rows_per_example, const Destination<T>& to) {
  TreeCursor<T> next = at;  // in registers
  TreeTile<T> sum = sum_examples<T, kExamples, kSingle>(next, rows_per_example);
  at = next;
  T* top = to.top;
  for (int join = 0; join < to.joins; ++join) sum.add_left(top -= kTileElements<T>);
  if (to.y == nullptr) return sum.store(top, kTreeColumns<T>);
  if (to.rows >= kTreeRows && to.columns >= kTreeColumns<T>) return sum.store(to.y, to.ldy);
  sum.store(top, kTreeColumns<T>);
  copy_part(top, to.y, to.ldy, to.rows, to.columns);
}

}  // namespace
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
