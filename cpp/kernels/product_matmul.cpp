#include <algorithm>

#include "kernels/product_functions.h"
#include "kernels/product_pack.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// Rows of B in one block: a panel of 16 float columns then takes half of a 32 KB first cache.
constexpr std::int64_t kBlockDepth = 384;
// Rows in one block of a transposed product; four packed panels of B take 64 KB of stack.
constexpr std::int64_t kTransposedDepth = 256;
constexpr std::int64_t kGroupRows = 96;

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
  Product<T> product;
  product.b = packed_panels(static_cast<const T*>(packed), k, n);
  RowGroup<T> group(product);
  const std::int64_t blocks = std::max<std::int64_t>(1, (k + kBlockDepth - 1) / kBlockDepth);
  for (std::int64_t row = 0; row < m; row += kGroupRows) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t depth = k * block / blocks;
      const bool last = block + 1 == blocks;
      product.walk.length = k * (block + 1) / blocks - depth;
      product.b_first_row = depth;
      product.accumulate = block > 0;
      product.bias = last && epilogue ? static_cast<const T*>(epilogue->bias) : nullptr;
      product.activation = last && epilogue ? epilogue->activation : Activation::kNone;
      for (std::int64_t r = row; r < std::min(m, row + kGroupRows); ++r) {
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
  std::int64_t depth, m, n;
};

// Some columns of Y, from the panels of the same columns of B.
template <class T>
void multiply_columns(const TransposedOperands<T>& o, std::int64_t first_column,
                      const Panels<T>& panels, bool accumulate) {
  Product<T> product;
  product.walk.length = o.depth;
  product.walk.a_step = o.lda;
  product.accumulate = accumulate;
  product.b = panels;
  RowGroup<T> group(product);
  for (std::int64_t i = 0; i < o.m; ++i) group.add(o.a + i, o.y + i * o.ldy + first_column);
  group.flush();
}

// Reads B in place where too few rows would read a copy again, but for columns that fill no panel.
template <class T>
void multiply_transposed_block(const TransposedOperands<T>& o, bool accumulate) {
  constexpr std::int64_t kWide = kPanelColumns<T>;
  constexpr std::int64_t kColumns = 4 * kWide;
  const bool in_place = o.depth < 16 || o.m < 48;
  const std::int64_t direct = in_place ? o.n / kWide * kWide : 0;
  if (direct > 0) multiply_columns<T>(o, 0, {o.b, direct, kWide, o.ldb, o.ldb}, accumulate);
  alignas(64) T packed[kTransposedDepth * kColumns];
  for (std::int64_t column = direct; column < o.n; column += kColumns) {
    const std::int64_t columns = std::min(kColumns, o.n - column);
    pack_rows(o.b + column, o.depth, columns, o.ldb, false, 0, o.depth, packed);
    multiply_columns(o, column, packed_panels<T>(packed, o.depth, columns), accumulate);
  }
}

}  // namespace

template <class T>
void matmul_transposed(const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
                       std::int64_t rows, std::int64_t m, std::int64_t n, void* y, std::int64_t ldy,
                       bool accumulate) {
  std::int64_t row = 0;
  do {
    const std::int64_t depth = std::min(kTransposedDepth, rows - row);
    multiply_transposed_block<T>({.a = static_cast<const T*>(a) + row * lda,
                                  .lda = lda,
                                  .b = static_cast<const T*>(b) + row * ldb,
                                  .ldb = ldb,
                                  .y = static_cast<T*>(y),
                                  .ldy = ldy,
                                  .depth = depth,
                                  .m = m,
                                  .n = n},
                                 accumulate || row > 0);
    row += depth;
  } while (row < rows);
}

#define SAMEGRAD_INSTANTIATE(T)                                                               \
  template std::size_t packed_bytes<T>(std::int64_t, std::int64_t);                           \
  template void pack<T>(const void*, std::int64_t, std::int64_t, std::int64_t, bool, void*);  \
  template void matmul<T>(const void*, std::int64_t, std::int64_t, std::int64_t, const void*, \
                          std::int64_t, void*, std::int64_t, const Epilogue*);                \
  template void matmul_transposed<T>(const void*, std::int64_t, const void*, std::int64_t,    \
                                     std::int64_t, std::int64_t, std::int64_t, void*,         \
                                     std::int64_t, bool);
SAMEGRAD_INSTANTIATE(float)
SAMEGRAD_INSTANTIATE(double)
#undef SAMEGRAD_INSTANTIATE

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
