// The matrices and sizes of one matrix product.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/table.h"
#include "ops/matmul_kernel.h"

namespace samegrad {

// One call of the kernel, in matrices: y[m][n] = op(a)[m][k] · op(b)[k][n].
struct GemmCall {
  const ProductKernels& product;
  std::size_t item;
  bool transpose_a, transpose_b;
  std::int64_t m, k, n;
  const char* a;
  const char* b;
  char* y;
  bool in_panels;  // the packed form is one panel after the other

  // op(a)ᵀ · b reads b as it is; everything else reads packed panels of b.
  bool packs() const { return !transpose_a || transpose_b; }
  std::int64_t a_bytes() const { return m * k * std::int64_t(item); }
  std::int64_t b_bytes() const { return k * n * std::int64_t(item); }
  std::int64_t y_bytes() const { return m * n * std::int64_t(item); }
  std::size_t packed_bytes() const { return aligned(product.packed_bytes(k, n)); }
  // Packs columns [begin, end) of b, from a multiple of kProductColumnGrain on; all of them, unless
  // the packed form is in panels.
  void pack(const char* matrix, std::int64_t begin, std::int64_t end, void* packed) const {
    const std::int64_t from = begin * (transpose_b ? k : 1), to = begin * k;
    product.pack(matrix + from * std::int64_t(item), k, end - begin, transpose_b ? k : n,
                 transpose_b, static_cast<char*>(packed) + to * std::int64_t(item));
  }
};

// The workspace of a transposed product, in the caller's frame; null where it reads a in place.
inline void* take_workspace(const ProductKernels& product, Scratch& scratch, std::int64_t rows,
                            std::int64_t m, std::int64_t n) {
  const std::size_t bytes = product.transposed_workspace_bytes(rows, m, n);
  return bytes > 0 ? scratch.take(bytes) : nullptr;
}

GemmCall multiplication(std::span<const View> in, bool transpose_a, bool transpose_b);
// The multiplication that MatmulAttrs describe.
GemmCall multiplication_of(std::span<const View> in, const Attrs& attrs);

// Calls f(matrix of a, matrix of b, matrix of y) for every matrix of the result.
template <class F>
void for_each_matrix(const Shape& a, const Shape& b, const Shape& y, const F& f) {
  const int leading = y.rank() - 2;
  std::array<std::int64_t, kMaxRank> step_a{}, step_b{}, at{};
  const auto fill = [leading, &y](const Shape& x, std::array<std::int64_t, kMaxRank>& step) {
    std::int64_t size = 1;
    for (int axis = leading - 1; axis >= 0; --axis) {
      const int own = axis - (y.rank() - x.rank());
      const std::int64_t dim = own >= 0 ? x[own] : 1;
      step[std::size_t(axis)] = dim == 1 ? 0 : size;
      size *= dim;
    }
  };
  fill(a, step_a);
  fill(b, step_b);
  const std::int64_t count = y.size(0, leading);
  std::int64_t of_a = 0, of_b = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    f(of_a, of_b, i);
    for (int axis = leading - 1; axis >= 0; --axis) {
      const auto s = std::size_t(axis);
      of_a += step_a[s];
      of_b += step_b[s];
      if (++at[s] < y[axis]) break;
      of_a -= step_a[s] * y[axis];
      of_b -= step_b[s] * y[axis];
      at[s] = 0;
    }
  }
}

}  // namespace samegrad
