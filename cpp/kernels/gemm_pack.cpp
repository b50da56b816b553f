#include "kernels/gemm_pack.h"

#include <algorithm>

#include "kernels/transpose.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

template <class T>
void transpose_block(const T* from, std::int64_t from_step, std::int64_t to_step, T* to) {
  Vec<T> rows[Vec<T>::kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < Vec<T>::kLanes; ++i) rows[i] = Vec<T>::load(from + i * from_step);
  transpose(rows);
#pragma GCC unroll 16
  for (int i = 0; i < Vec<T>::kLanes; ++i) rows[i].store(to + i * to_step);
}

// Transposes a block at an edge: `rows` rows of `columns` columns, and zeros where rows end.
template <class T>
void transpose_part(const T* from, std::int64_t rows, std::int64_t columns, std::int64_t from_step,
                    std::int64_t to_step, T* to) {
  constexpr std::int64_t kSide = Vec<T>::kLanes;
  T block[kSide * kSide] = {};
  for (std::int64_t i = 0; i < rows; ++i) {
    load_n(from + i * from_step, columns, T(0)).store(block + i * kSide);
  }
  T transposed[kSide * kSide];
  transpose_block(block, kSide, kSide, transposed);
  for (std::int64_t i = 0; i < columns; ++i) {
    std::copy_n(transposed + i * kSide, kSide, to + i * to_step);
  }
}

}  // namespace

template <class T>
void pack_panel(const T* b, std::int64_t rows, std::int64_t columns, std::int64_t ldb,
                std::int64_t width, T* panel) {
  for (std::int64_t p = 0; p < rows; ++p) {
    T* row = panel + p * width;
    std::copy_n(b + p * ldb, columns, row);
    std::fill(row + columns, row + width, T(0));
  }
}

// Blocks of registers, column by column of blocks: few rows of b are read at a time, each one
// along.
template <class T>
void pack_panel_transposed(const T* b, std::int64_t rows, std::int64_t columns, std::int64_t ldb,
                           std::int64_t width, T* panel) {
  constexpr std::int64_t kSide = Vec<T>::kLanes;
  for (std::int64_t c = 0; c < width; c += kSide) {
    const std::int64_t count = std::clamp<std::int64_t>(columns - c, 0, kSide);
    for (std::int64_t p = 0; p < rows; p += kSide) {
      const T* from = b + c * ldb + p;
      T* to = panel + p * width + c;
      if (count == kSide && rows - p >= kSide) {
        transpose_block(from, ldb, width, to);
      } else {
        transpose_part(from, count, std::min(rows - p, kSide), ldb, width, to);
      }
    }
  }
}

namespace {

// Copies a row of a panel by registers: a memcpy of so few bytes would be a call. Rows are pages
// apart, where hardware does not prefetch, so the next rows are prefetched here.
template <class T>
SAMEGRAD_INLINE void copy_row(const T* from, std::int64_t ldb, T* to) {
  constexpr std::int64_t kRowsAhead = 4, kLine = 64 / sizeof(T);
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kPanelColumns<T>; i += kLine) {
    __builtin_prefetch(from + kRowsAhead * ldb + i);
  }
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kPanelColumns<T>; i += Vec<T>::kLanes) {
    Vec<T>::load(from + i).store(to + i);
  }
}

// Row by row of b through some panels at a time: what is read is together, and so few panels are
// written that they stay in the first cache's reach.
template <class T>
void pack_whole_panels(const T* b, std::int64_t rows, std::int64_t panels, std::int64_t ldb,
                       std::int64_t k, T* packed) {
  constexpr std::int64_t kWide = kPanelColumns<T>, kPanelsAtOnce = 16;
  for (std::int64_t first = 0; first < panels; first += kPanelsAtOnce) {
    const std::int64_t end = std::min(panels, first + kPanelsAtOnce);
    for (std::int64_t p = 0; p < rows; ++p) {
      for (std::int64_t panel = first; panel < end; ++panel) {
        copy_row(b + p * ldb + panel * kWide, ldb, packed + (panel * k + p) * kWide);
      }
    }
  }
}

}  // namespace

template <class T>
void pack_rows(const T* b, std::int64_t rows, std::int64_t n, std::int64_t ldb, bool transposed,
               std::int64_t first_row, std::int64_t k, T* packed) {
  const std::int64_t whole = transposed ? 0 : n / kPanelColumns<T>;
  pack_whole_panels(b, rows, whole, ldb, k, packed + first_row * kPanelColumns<T>);
  for (std::int64_t column = whole * kPanelColumns<T>; column < n; column += kPanelColumns<T>) {
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
