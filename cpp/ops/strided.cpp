#include "ops/strided.h"

#include <algorithm>
#include <cstring>

namespace samegrad {
namespace {

template <class T>
void copy_line(T* to, const T* from, std::int64_t n, std::int64_t to_step, std::int64_t from_step) {
  constexpr std::int64_t kShort = 64 / sizeof(T);
  if (to_step == 1 && from_step == 1 && n > kShort) {
    std::memcpy(to, from, std::size_t(n) * sizeof(T));
  } else if (to_step == 1 && from_step == 0) {
    std::fill_n(to, n, *from);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

}  // namespace

void StridedCopy::add_axis(std::int64_t size, std::int64_t to_step, std::int64_t from_step) {
  empty_ |= size == 0;
  if (size == 1) return;
  if (rank_ > 0) {
    Axis& outer = axes_[std::size_t(rank_ - 1)];
    if (outer.to == to_step * size && outer.from == from_step * size) {
      outer = {outer.size * size, to_step, from_step};
      return;
    }
  }
  axes_[std::size_t(rank_++)] = {size, to_step, from_step};
}

// Brings the axis that is contiguous in the source next to the innermost one, so that both can be
// walked in blocks: a transposition touches whole cache lines on both sides.
void StridedCopy::interchange_loops() {
  if (rank_ < 2 || axes_[std::size_t(rank_ - 1)].from == 1) return;
  for (int i = 0; i + 1 < rank_; ++i) {
    if (axes_[std::size_t(i)].from != 1) continue;
    std::rotate(axes_.begin() + i, axes_.begin() + i + 1, axes_.begin() + rank_ - 1);
    return;
  }
}

template <class T>
void StridedCopy::run_typed(T* to, const T* from) const {
  if (rank_ == 0) {
    *to = *from;
    return;
  }
  const Axis inner = axes_[std::size_t(rank_ - 1)];
  const Axis outer = rank_ > 1 ? axes_[std::size_t(rank_ - 2)] : Axis{1, 0, 0};
  // Blocks only where both sides profit.
  const bool turned = outer.from == 1 && inner.from != 1 && inner.from != 0;
  const std::int64_t block = turned ? 64 / std::int64_t(sizeof(T)) : inner.size;
  const int outermost = std::max(rank_ - 2, 0);
  std::array<std::int64_t, 2 * kMaxRank> at{};
  for (;;) {
    for (std::int64_t j = 0; j < inner.size; j += block) {
      const std::int64_t n = std::min(block, inner.size - j);
      for (std::int64_t i = 0; i < outer.size; ++i) {
        copy_line(to + i * outer.to + j * inner.to, from + i * outer.from + j * inner.from, n,
                  inner.to, inner.from);
      }
    }
    int axis = outermost - 1;
    for (; axis >= 0; --axis) {
      const Axis& a = axes_[std::size_t(axis)];
      to += a.to;
      from += a.from;
      if (++at[std::size_t(axis)] < a.size) break;
      to -= a.to * a.size;
      from -= a.from * a.size;
      at[std::size_t(axis)] = 0;
    }
    if (axis < 0) return;
  }
}

void StridedCopy::run(void* to, const void* from, DType dtype) const {
  if (empty_) return;
  StridedCopy copy = *this;
  copy.interchange_loops();
  visit(dtype, [&]<class T>() {
    copy.run_typed(static_cast<BitsOf<T>*>(to), static_cast<const BitsOf<T>*>(from));
  });
}

int StridedCopy::cut_axis() const {
  constexpr std::int64_t kLong = 64;
  const auto end = axes_.begin() + rank_;
  if (rank_ > 0 && axes_[0].size >= kLong) return 0;
  return int(std::ranges::max_element(axes_.begin(), end, {}, &Axis::size) - axes_.begin());
}

std::int64_t StridedCopy::parts() const {
  if (empty_) return 0;
  return rank_ > 0 ? axes_[std::size_t(cut_axis())].size : 1;
}

void StridedCopy::run(void* to, const void* from, DType dtype, std::int64_t begin,
                      std::int64_t end) const {
  if (begin == end) return;
  StridedCopy part = *this;
  std::int64_t to_first = 0, from_first = 0;
  if (rank_ > 0) {
    Axis& axis = part.axes_[std::size_t(cut_axis())];
    axis.size = end - begin;
    to_first = begin * axis.to;
    from_first = begin * axis.from;
  }
  const auto item = std::int64_t(size_of(dtype));
  part.run(static_cast<char*>(to) + to_first * item,
           static_cast<const char*>(from) + from_first * item, dtype);
}

std::array<std::int64_t, kMaxRank> contiguous_steps(const Shape& shape) {
  std::array<std::int64_t, kMaxRank> steps{};
  std::int64_t size = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    steps[std::size_t(axis)] = size;
    size *= shape[axis];
  }
  return steps;
}

}  // namespace samegrad
