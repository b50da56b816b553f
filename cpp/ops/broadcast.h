// Broadcasting: the index arithmetic of elementwise kernels over operands of different shapes.
#pragma once

#include <array>
#include <span>

#include "tensor/kernel_args.h"

namespace samegrad {

// The axes of a broadcast result of N operands, neighbours merged where every operand either has
// both or lacks both. Axis 0 is the innermost.
template <int N>
class BroadcastLoop {
 public:
  BroadcastLoop(std::span<const View> in, const Shape& out) {
    std::array<std::int64_t, N> sizes;
    sizes.fill(1);
    for (int axis = 1; axis <= out.rank(); ++axis) {
      const std::int64_t dim = out[out.rank() - axis];
      if (dim == 1) continue;
      std::array<std::int64_t, N> strides;
      bool mergeable = rank_ > 0;
      for (int k = 0; k < N; ++k) {
        const Shape& shape = in[std::size_t(k)].shape;
        const std::int64_t own = axis <= shape.rank() ? shape[shape.rank() - axis] : 1;
        strides[k] = own == 1 ? 0 : sizes[k];
        sizes[k] *= own;
        mergeable = mergeable && (own == 1) == (strides_[rank_ - 1][k] == 0);
      }
      if (mergeable) {
        dims_[rank_ - 1] *= dim;
      } else {
        dims_[rank_] = dim;
        strides_[rank_++] = strides;
      }
    }
    for (int k = 0; k < N; ++k) item_[k] = std::int64_t(size_of(in[std::size_t(k)].dtype));
  }

  // Calls inner(pointers of the operands, y, n, steps) for every innermost run; a step is 0 or 1.
  template <class Inner>
  void run(std::span<const View> in, const View& out, const Inner& inner) const {
    std::array<const char*, N> x;
    std::array<int, N> steps{};
    for (int k = 0; k < N; ++k) {
      x[k] = in[std::size_t(k)].template as<const char>();
      if (rank_ > 0) steps[k] = strides_[0][k] != 0;
    }
    std::int64_t runs = 1;
    for (int axis = 1; axis < rank_; ++axis) runs *= dims_[axis];
    const std::int64_t n = rank_ > 0 ? dims_[0] : 1;
    if (runs == 0 || n == 0) return;
    char* y = out.as<char>();
    const std::int64_t y_bytes = n * std::int64_t(size_of(out.dtype));
    std::array<std::int64_t, kMaxRank> at{};
    for (std::int64_t r = 0; r < runs; ++r, y += y_bytes) {
      inner(x, y, n, steps);
      advance(x, at);
    }
  }

 private:
  void advance(std::array<const char*, N>& x, std::array<std::int64_t, kMaxRank>& at) const {
    for (int axis = 1; axis < rank_; ++axis) {
      for (int k = 0; k < N; ++k) x[k] += strides_[axis][k] * item_[k];
      if (++at[axis] < dims_[axis]) return;
      for (int k = 0; k < N; ++k) x[k] -= dims_[axis] * strides_[axis][k] * item_[k];
      at[axis] = 0;
    }
  }

  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> dims_;
  std::array<std::array<std::int64_t, N>, kMaxRank> strides_;
  std::array<std::int64_t, N> item_;
};

}  // namespace samegrad
