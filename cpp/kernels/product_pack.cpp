#include "kernels/product_pack.h"

#include <algorithm>

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// Whole panels are the usual case: a copy of constant size is a few instructions.
template <class T>
void pack_whole_panel(const T* b, std::int64_t rows, std::int64_t ldb, T* panel) {
  for (std::int64_t p = 0; p < rows; ++p) {
    std::copy_n(b + p * ldb, kPanelColumns<T>, panel + p * kPanelColumns<T>);
  }
}

}  // namespace

template <class T>
void pack_panel(const T* b, std::int64_t rows, std::int64_t columns, std::int64_t ldb,
                std::int64_t width, T* panel) {
  if (columns == kPanelColumns<T>) return pack_whole_panel(b, rows, ldb, panel);
  for (std::int64_t p = 0; p < rows; ++p) {
    T* row = panel + p * width;
    std::copy_n(b + p * ldb, columns, row);
    std::fill(row + columns, row + width, T(0));
  }
}

template <class T>
void pack_panel_transposed(const T* b, std::int64_t rows, std::int64_t columns, std::int64_t ldb,
                           std::int64_t width, T* panel) {
  for (std::int64_t p = 0; p < rows; ++p) {
    T* row = panel + p * width;
    for (std::int64_t c = 0; c < columns; ++c) row[c] = b[c * ldb + p];
    std::fill(row + columns, row + width, T(0));
  }
}

template <class T>
void pack_rows(const T* b, std::int64_t rows, std::int64_t n, std::int64_t ldb, bool transposed,
               std::int64_t first_row, std::int64_t k, T* packed) {
  for (std::int64_t column = 0; column < n; column += kPanelColumns<T>) {
    const std::int64_t columns = panel_columns<T>(column, n);
    const std::int64_t width = panel_width<T>(column, n);
    T* panel = packed + column * k + first_row * width;
    if (transposed) {
      pack_panel_transposed(b + column * ldb, rows, columns, ldb, width, panel);
    } else {
      pack_panel(b + column, rows, columns, ldb, width, panel);
    }
  }
}

#define SAMEGRAD_FLOAT(T)                                                                         \
  template void pack_panel(const T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*); \
  template void pack_panel_transposed(const T*, std::int64_t, std::int64_t, std::int64_t,         \
                                      std::int64_t, T*);                                          \
  template void pack_rows(const T*, std::int64_t, std::int64_t, std::int64_t, bool, std::int64_t, \
                          std::int64_t, T*);
#include "kernels/instantiate.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
