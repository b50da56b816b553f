#include <algorithm>

#include "base/rounding.h"
#include "kernels/gemm_functions.h"
#include "kernels/gemm_k_blocks.h"
#include "kernels/gemm_pack.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// Rows of B in one block: a panel of 16 float columns then takes half of a 32 KB first cache.
constexpr std::int64_t kBlockDepth = 384;
// Rows in one block of a transposed product; a packed panel of B takes at most 32 KB of stack,
// which is a user's thread's and may be small.
constexpr std::int64_t kTransposedDepth = 256;
// Columns of A that are copied at a time, if they meet more panels of B than two: a part of the
// second cache.
constexpr std::int64_t kCopiedColumns = 2 * kMaxRows;

}  // namespace

template <class T>
std::size_t packed_bytes(std::int64_t k, std::int64_t n) {
  return packed_size_bytes<T>(k, n);
}

template <class T>
void pack(const void* b, std::int64_t k, std::int64_t n, std::int64_t ldb, bool transposed,
          void* packed) {
  pack_rows(static_cast<const T*>(b), k, n, ldb, transposed, 0, k, static_cast<T*>(packed));
}

template <class T>
void matmul(const void* a, std::int64_t m, std::int64_t k, std::int64_t lda, const void* packed,
            std::int64_t n, void* y, std::int64_t ldy, const Epilogue* epilogue) {
  const auto* a_rows = static_cast<const T*>(a);
  auto* y_rows = static_cast<T*>(y);
  Gemm<T> product;
  product.b = packed_panels(static_cast<const T*>(packed), k, n);
  RowBatch<T> group(product);
  // multiply() cuts long contractions itself.
  const std::int64_t blocks =
      k > kContractionBlock ? 1 : std::max<std::int64_t>(1, divide_up(k, kBlockDepth));
  for (std::int64_t row = 0; row < m; row += kMaxRows) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t depth = k * block / blocks;
      const bool last = block + 1 == blocks;
      product.walk.length = k * (block + 1) / blocks - depth;
      product.b_first_row = depth;
      product.accumulate = block > 0;
      product.bias = last && epilogue ? static_cast<const T*>(epilogue->bias) : nullptr;
      product.activation = last && epilogue ? epilogue->activation : Activation::kNone;
      for (std::int64_t r = row; r < std::min(m, row + kMaxRows); ++r) {
        group.add(a_rows + r * lda + depth, y_rows + r * ldy);
      }
      group.flush();
    }
  }
}

namespace {

template <class T>
struct TransposedOperands {
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T* y;
  std::int64_t ldy;
  std::int64_t rows, m, n;
  T* workspace;
};

// Panels of B are read in place where too few rows would read a copy again.
template <class T>
bool reads_in_place(std::int64_t rows, std::int64_t m) {
  return rows < 16 || m < 48;
}

// Some columns of Y, from the panels of the same columns of B.
template <class T>
void multiply_columns(const TransposedOperands<T>& o, std::int64_t first_column,
                      const Panels<T>& panels, bool accumulate) {
  Gemm<T> product;
  product.walk.length = o.rows;
  product.walk.a_step = o.lda;
  product.accumulate = accumulate;
  product.b = panels;
  RowBatch<T> group(product);
  for (std::int64_t i = 0; i < o.m; ++i) group.add(o.a + i, o.y + i * o.ldy + first_column);
  group.flush();
}

// Columns of Y, panel by panel; those that fill no panel are always read from a copy.
template <class T>
void multiply_panels(const TransposedOperands<T>& o, bool in_place, bool accumulate) {
  constexpr std::int64_t kWide = kPanelColumns<T>;
  const std::int64_t direct = in_place ? o.n / kWide * kWide : 0;
  if (direct > 0) multiply_columns<T>(o, 0, {o.b, direct, kWide, o.ldb, o.ldb}, accumulate);
  alignas(64) T packed[kTransposedDepth * kWide];
  for (std::int64_t column = direct; column < o.n; column += kWide) {
    const std::int64_t columns = std::min(kWide, o.n - column);
    pack_rows(o.b + column, o.rows, columns, o.ldb, false, 0, o.rows, packed);
    multiply_columns(o, column, packed_panels<T>(packed, o.rows, columns), accumulate);
  }
}

template <class T>
void multiply_transposed_block(const TransposedOperands<T>& o, bool accumulate) {
  const bool in_place = reads_in_place<T>(o.rows, o.m);
  if (!o.workspace || in_place) return multiply_panels(o, in_place, accumulate);
  TransposedOperands<T> some = o;
  some.a = o.workspace;
  some.lda = std::min(o.m, kCopiedColumns);
  for (std::int64_t first = 0; first < o.m; first += kCopiedColumns) {
    some.m = std::min(kCopiedColumns, o.m - first);
    some.y = o.y + first * o.ldy;
    for (std::int64_t r = 0; r < o.rows; ++r) {
      std::copy_n(o.a + r * o.lda + first, some.m, o.workspace + r * some.lda);
    }
    multiply_panels(some, false, accumulate);
  }
}

// One chain per element.
template <class T>
void multiply_transposed_chain(TransposedOperands<T> o, bool accumulate) {
  std::int64_t left = o.rows;
  do {
    o.rows = std::min(kTransposedDepth, left);
    multiply_transposed_block(o, accumulate);
    o.a += o.rows * o.lda;
    o.b += o.rows * o.ldb;
    left -= o.rows;
    accumulate = true;
  } while (left > 0);
}

// More rows than a chain has: some rows of Y at a time, so that their partial sums stay small.
template <class T>
void multiply_long_transposed(TransposedOperands<T> o, bool accumulate) {
  for (std::int64_t i = 0; i < o.m; i += kMaxRows) {
    TransposedOperands<T> group = o;
    group.a += i;
    group.m = std::min(std::int64_t{kMaxRows}, o.m - i);
    T* y[kMaxRows];
    for (std::int64_t r = 0; r < group.m; ++r) y[r] = o.y + (i + r) * o.ldy;
    join_chains<T>(
        y, group.m, o.n, o.rows, accumulate,
        [&](const ChainBlock& block, std::int64_t first, std::int64_t count, T* const* to) {
          TransposedOperands<T> chain = group;
          chain.a += first * o.lda + block.row;
          chain.b += first * o.ldb + block.column;
          chain.m = block.rows;
          chain.n = block.columns;
          chain.rows = count;
          chain.y = to[0];
          chain.ldy = block.rows > 1 ? to[1] - to[0] : block.columns;
          multiply_transposed_chain(chain, false);
        });
  }
}

}  // namespace

template <class T>
std::size_t transposed_workspace_bytes(std::int64_t rows, std::int64_t m, std::int64_t n) {
  if (reads_in_place<T>(rows, m) || n <= 2 * kPanelColumns<T>) return 0;
  return static_cast<std::size_t>(std::min(rows, kTransposedDepth) * std::min(m, kCopiedColumns)) *
         sizeof(T);
}

template <class T>
void matmul_transposed(const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
                       std::int64_t rows, std::int64_t m, std::int64_t n, void* y, std::int64_t ldy,
                       bool accumulate, void* workspace) {
  const TransposedOperands<T> o{static_cast<const T*>(a),
                                lda,
                                static_cast<const T*>(b),
                                ldb,
                                static_cast<T*>(y),
                                ldy,
                                rows,
                                m,
                                n,
                                static_cast<T*>(workspace)};
  if (rows > kContractionBlock) return multiply_long_transposed(o, accumulate);
  multiply_transposed_chain(o, accumulate);
}

#define SAMEGRAD_FLOAT(T)                                                                       \
  template std::size_t packed_bytes<T>(std::int64_t, std::int64_t);                             \
  template void pack<T>(const void*, std::int64_t, std::int64_t, std::int64_t, bool, void*);    \
  template void matmul<T>(const void*, std::int64_t, std::int64_t, std::int64_t, const void*,   \
                          std::int64_t, void*, std::int64_t, const Epilogue*);                  \
  template std::size_t transposed_workspace_bytes<T>(std::int64_t, std::int64_t, std::int64_t); \
  template void matmul_transposed<T>(const void*, std::int64_t, const void*, std::int64_t,      \
                                     std::int64_t, std::int64_t, std::int64_t, void*,           \
                                     std::int64_t, bool, void*);
#include "kernels/instantiate.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
