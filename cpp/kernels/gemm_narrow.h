// Products with few columns, as convolutions to one channel have: where rows are next to each other
// in A, as elements of one column would, the rows are the lanes of registers; columns would leave
// most lanes empty. Each element is the same chain as in a tile.
#pragma once

#include "kernels/gemm.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// From here on lanes of columns are as good.
inline constexpr std::int64_t kMaxNarrowColumns = 4;

// Registers of rows at a time: as many sums as a tile has.
constexpr int most_pieces(int columns) {
  return 8 * columns <= 2 * kTileRows ? 8 : 4;
}

// From row to row of a right operand with so few columns, which are one panel.
template <class T>
std::int64_t step_of_narrow(const Panels<T>& b) {
  static_assert(kMaxNarrowColumns <= kPanelColumns<T>);
  return b.columns <= Vec<T>::kLanes ? b.narrow_row_step : b.row_step;
}

// Rows that a register holds.
struct NarrowPiece {
  int row, count;
};

template <class T, int kPieces, int kColumns, bool kPart>
class NarrowTile {
 public:
  static void run(const Gemm<T>& product, const NarrowPiece* pieces) {
    NarrowTile t{product, pieces};
    t.start();
    t.contract();
    t.finish();
  }

 private:
  static constexpr int kLanes = Vec<T>::kLanes;

  NarrowTile(const Gemm<T>& product, const NarrowPiece* pieces)
      : product_(product), pieces_(pieces) {}

  SAMEGRAD_INLINE void start() {
    T lanes[kPieces][kColumns][kLanes] = {};
    if (product_.accumulate) {
      each_element([&](int p, int j, int i, T& y) { lanes[p][j][i] = y; });
    }
#pragma GCC unroll 16
    for (int p = 0; p < kPieces; ++p) {
#pragma GCC unroll 16
      for (int j = 0; j < kColumns; ++j) sum_[p][j] = Vec<T>::load(lanes[p][j]);
    }
  }

  // Calls f(piece, column, lane, element of the result). The loops stay loops: unrolled like those
  // over registers they would be most of this routine.
  template <class F>
  SAMEGRAD_INLINE void each_element(const F& f) const {
#pragma GCC unroll 1
    for (int p = 0; p < kPieces; ++p) {
      T* const* y = product_.y + pieces_[p].row;
      const int count = pieces_[p].count;
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) {
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) f(p, j, i, y[i][j]);
      }
    }
  }

  SAMEGRAD_INLINE void contract() {
    const std::int64_t b_step = step_of_narrow(product_.b);
    const T* a[kPieces];
#pragma GCC unroll 16
    for (int p = 0; p < kPieces; ++p) a[p] = product_.a[pieces_[p].row];
    const T* b = product_.b.data + product_.b_first_row * b_step;
    for_each_product(product_.walk, b, b_step,
                     [&](std::int64_t at, const T* factors) { add_products(a, at, factors); });
  }

  SAMEGRAD_INLINE void add_products(const T* const (&a)[kPieces], std::int64_t at, const T* b) {
    Vec<T> factor[kColumns];
#pragma GCC unroll 16
    for (int j = 0; j < kColumns; ++j) factor[j] = Vec<T>(b[j]);
#pragma GCC unroll 16
    for (int p = 0; p < kPieces; ++p) {
      const Vec<T> values = load(a[p] + at, pieces_[p].count);
#pragma GCC unroll 16
      for (int j = 0; j < kColumns; ++j) sum_[p][j] = fma(values, factor[j], sum_[p][j]);
    }
  }

  static SAMEGRAD_INLINE Vec<T> load(const T* from, int count) {
    if constexpr (kPart) return load_partial(from, count, T(0));
    return Vec<T>::load(from);
  }

  SAMEGRAD_INLINE void finish() {
    const Vec<T> zero = T(0);
    T lanes[kPieces][kColumns][kLanes];
#pragma GCC unroll 16
    for (int p = 0; p < kPieces; ++p) {
#pragma GCC unroll 16
      for (int j = 0; j < kColumns; ++j) {
        Vec<T> sum = sum_[p][j];
        if (product_.bias != nullptr) sum = sum + Vec<T>(product_.bias[j]);
        if (product_.activation == Activation::kRelu) sum = select(zero > sum, zero, sum);
        sum.store(lanes[p][j]);
      }
    }
    each_element([&](int p, int j, int i, T& y) { y = lanes[p][j][i]; });
  }

  const Gemm<T>& product_;
  const NarrowPiece* const pieces_;
  Vec<T> sum_[kPieces][kColumns];
};

template <class T>
bool is_narrow(const Gemm<T>& product) {
  return product.b.columns <= kMaxNarrowColumns && product.rows > 1 &&
         product.a[1] == product.a[0] + 1;
}

// Multiplies as many pieces at a time as there are registers for, then half as many, …
template <class T, int kColumns, int kPieces>
void multiply_pieces(const Gemm<T>& product, const NarrowPiece* pieces, int count) {
  while (count >= kPieces) {
    bool part = false;
    for (int p = 0; p < kPieces; ++p) part |= pieces[p].count < Vec<T>::kLanes;
    if (part) {
      NarrowTile<T, kPieces, kColumns, true>::run(product, pieces);
    } else {
      NarrowTile<T, kPieces, kColumns, false>::run(product, pieces);
    }
    pieces += kPieces;
    count -= kPieces;
  }
  if constexpr (kPieces > 1) multiply_pieces<T, kColumns, kPieces / 2>(product, pieces, count);
}

template <class T>
void multiply_narrow(const Gemm<T>& product) {
  NarrowPiece pieces[kMaxRows];
  int count = 0;
  for (int row = 0; row < product.rows; row += pieces[count++].count) {
    const T* const* a = product.a + row;
    int n = 1;
    while (n < Vec<T>::kLanes && row + n < product.rows && a[n] == a[0] + n) ++n;
    pieces[count] = {row, n};
  }
  switch (product.b.columns) {
    case 1:
      return multiply_pieces<T, 1, most_pieces(1)>(product, pieces, count);
    case 2:
      return multiply_pieces<T, 2, most_pieces(2)>(product, pieces, count);
    case 3:
      return multiply_pieces<T, 3, most_pieces(3)>(product, pieces, count);
    default:
      return multiply_pieces<T, 4, most_pieces(4)>(product, pieces, count);
  }
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
