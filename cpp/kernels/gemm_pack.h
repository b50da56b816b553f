// The packed form of a right operand: panel after panel, row after row, padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/rounding.h"
#include "kernels/gemm.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// Columns of the packed form: whole panels, but a last panel of one vector where that is enough.
template <class T>
std::int64_t packed_columns(std::int64_t n) {
  return round_up(n, Vec<T>::kLanes);
}

template <class T>
std::size_t packed_size_bytes(std::int64_t k, std::int64_t n) {
  return static_cast<std::size_t>(k * packed_columns<T>(n)) * sizeof(T);
}

template <class T>
Panels<T> packed_panels(const T* packed, std::int64_t k, std::int64_t n) {
  return {.data = packed,
          .columns = n,
          .panel_step = k * kPanelColumns<T>,
          .row_step = kPanelColumns<T>,
          .narrow_row_step = Vec<T>::kLanes};
}

// Rows [0, rows) of b, columns [0, columns), as one panel of `width` columns.
template <class T>
void pack_panel(const T* b, std::int64_t rows, std::int64_t columns, std::int64_t ldb,
                std::int64_t width, T* panel);
// Packs a panel from b stored the other way round: element (row, column) is b[column * ldb + row].
template <class T>
void pack_panel_transposed(const T* b, std::int64_t rows, std::int64_t columns, std::int64_t ldb,
                           std::int64_t width, T* panel);

// Rows [first_row, first_row + rows) of a packed form of k rows.
template <class T>
void pack_rows(const T* b, std::int64_t rows, std::int64_t n, std::int64_t ldb, bool transposed,
               std::int64_t first_row, std::int64_t k, T* packed);

// Widths of the panel that starts at this column: how many columns it has, and how many are stored.
template <class T>
std::int64_t panel_columns(std::int64_t column, std::int64_t n) {
  return n - column < kPanelColumns<T> ? n - column : kPanelColumns<T>;
}
template <class T>
std::int64_t panel_width(std::int64_t column, std::int64_t n) {
  return n - column <= Vec<T>::kLanes ? Vec<T>::kLanes : kPanelColumns<T>;
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
