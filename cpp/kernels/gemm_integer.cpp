#include <algorithm>
#include <type_traits>

#include "kernels/gemm_functions.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// Sums wrap around; in unsigned arithmetic that is defined. Packed is simply b[k][n].
template <class T>
using Wrapping = std::make_unsigned_t<T>;

template <class T>
std::size_t packed_bytes(std::int64_t k, std::int64_t n) {
  return static_cast<std::size_t>(k * n) * sizeof(T);
}

template <class T>
void pack(const void* b, std::int64_t k, std::int64_t n, std::int64_t ldb, bool transposed,
          void* packed) {
  const auto* from = static_cast<const T*>(b);
  auto* to = static_cast<T*>(packed);
  const std::int64_t row_step = transposed ? 1 : ldb;
  const std::int64_t column_step = transposed ? ldb : 1;
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t j = 0; j < n; ++j) to[p * n + j] = from[p * row_step + j * column_step];
  }
}

template <class T>
void add_scaled_row(Wrapping<T> factor, const T* b, std::int64_t n, T* y) {
  for (std::int64_t j = 0; j < n; ++j) {
    // Converting back is modulo 2^bits since C++20.
    y[j] = static_cast<T>(static_cast<Wrapping<T>>(y[j]) + factor * static_cast<Wrapping<T>>(b[j]));
  }
}

template <class T>
void finish_row(const Epilogue& epilogue, std::int64_t n, T* y) {
  if (epilogue.bias != nullptr) add_scaled_row<T>(1, static_cast<const T*>(epilogue.bias), n, y);
  if (epilogue.activation == Activation::kRelu) {
    for (std::int64_t j = 0; j < n; ++j) y[j] = std::max(y[j], T(0));
  }
}

template <class T>
void matmul(const void* a, std::int64_t m, std::int64_t k, std::int64_t lda, const void* packed,
            std::int64_t n, void* y, std::int64_t ldy, const Epilogue* epilogue) {
  const auto* b = static_cast<const T*>(packed);
  for (std::int64_t i = 0; i < m; ++i) {
    const T* a_row = static_cast<const T*>(a) + i * lda;
    T* y_row = static_cast<T*>(y) + i * ldy;
    std::fill(y_row, y_row + n, T(0));
    for (std::int64_t p = 0; p < k; ++p) {
      add_scaled_row(static_cast<Wrapping<T>>(a_row[p]), b + p * n, n, y_row);
    }
    if (epilogue != nullptr) finish_row(*epilogue, n, y_row);
  }
}

std::size_t matmul_grouped_scratch_bytes(std::int64_t, std::int64_t) {
  return 0;
}

// One row of b after the other, where it is.
template <class T>
void matmul_grouped_row(const GroupedGemm& w, const T* a, T* y) {
  const T* b = static_cast<const T*>(w.b);
  std::fill(y, y + w.columns, T(0));
  if (w.transposed) {
    for (std::int64_t j = 0; j < w.columns; ++j) {
      const T* column = b + (w.first_column + j) * w.k;
      for (std::int64_t p = 0; p < w.k; ++p) {
        add_scaled_row(static_cast<Wrapping<T>>(a[p]), column + p, 1, y + j);
      }
    }
  } else {
    for (std::int64_t p = 0; p < w.k; ++p) {
      add_scaled_row(static_cast<Wrapping<T>>(a[p]), b + p * w.n + w.first_column, w.columns, y);
    }
  }
}

template <class T>
void matmul_grouped(const GroupedGemm& w) {
  Epilogue epilogue = w.epilogue != nullptr ? *w.epilogue : Epilogue{};
  if (epilogue.bias != nullptr) {
    epilogue.bias = static_cast<const T*>(epilogue.bias) + w.first_column;
  }
  for (const RowPiece& piece : w.pieces) {
    for (std::int64_t r = 0; r < piece.rows; ++r) {
      T* y = static_cast<T*>(piece.y) + r * w.n + w.first_column;
      matmul_grouped_row(w, static_cast<const T*>(piece.a) + r * w.k, y);
      finish_row(epilogue, w.columns, y);
    }
  }
}

template <class T>
void matmul_transposed(const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
                       std::int64_t rows, std::int64_t m, std::int64_t n, void* y, std::int64_t ldy,
                       bool accumulate, void*) {
  for (std::int64_t i = 0; i < m; ++i) {
    const T* a_column = static_cast<const T*>(a) + i;
    T* y_row = static_cast<T*>(y) + i * ldy;
    if (!accumulate) std::fill(y_row, y_row + n, T(0));
    for (std::int64_t r = 0; r < rows; ++r) {
      add_scaled_row(static_cast<Wrapping<T>>(a_column[r * lda]),
                     static_cast<const T*>(b) + r * ldb, n, y_row);
    }
  }
}

template <class T>
constexpr ProductKernels kIntegerProducts = {
    .packed_bytes = packed_bytes<T>,
    .pack = pack<T>,
    .matmul = matmul<T>,
    .matmul_grouped_scratch_bytes = matmul_grouped_scratch_bytes,
    .matmul_grouped = matmul_grouped<T>,
    .transposed_workspace_bytes = [](std::int64_t, std::int64_t,
                                     std::int64_t) { return std::size_t{0}; },
    .matmul_transposed = matmul_transposed<T>,
    .matmul_tree_scratch_bytes = nullptr,
    .matmul_tree = nullptr,
    .tree_packed_bytes = nullptr,
    .tree_pack = nullptr,
    .matmul_tree_add_scratch_bytes = nullptr,
    .matmul_tree_add = nullptr,
    .conv2d_packed_bytes = nullptr,
    .conv2d_pack = nullptr,
    .conv2d_scratch_bytes = nullptr,
    .conv2d = nullptr,
    .conv2d_input_grad_packed_bytes = nullptr,
    .conv2d_input_grad_pack = nullptr,
    .conv2d_input_grad_scratch_bytes = nullptr,
    .conv2d_input_grad = nullptr,
    .conv2d_filter_grad_scratch_bytes = nullptr,
    .conv2d_filter_grad = nullptr,
    .conv2d_filter_tree_scratch_bytes = nullptr,
    .conv2d_filter_tree = nullptr};

}  // namespace

const ProductKernels* integer_product_kernels(DType dtype) {
  return kernel_for<samegrad::kInts>(dtype, []<class T>() {
    static_assert(kSumsInPlace<T>, "a chain goes on from what is in the result");
    return &kIntegerProducts<T>;
  });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
