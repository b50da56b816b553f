// The fixed order in which a row is reduced: element j of a block goes to lane j % kRowLanes,
// whatever the register's width, the lanes are joined in pairs, and the blocks by halving.
#pragma once

#include <cstdint>

#include "base/reduction_order.h"
#include "kernels/reduce_ops.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// Each lane j < distance becomes fold(lane j, lane j + distance); the others no longer matter.
template <class T, class Op>
SAMEGRAD_INLINE Vec<T> fold_halves(Vec<T> v, int distance) {
  typename Vec<T>::Int from;
  for (int i = 0; i < Vec<T>::kLanes; ++i) from[i] = (i + distance) % Vec<T>::kLanes;
#if defined(__clang__)
  T lanes[Vec<T>::kLanes], moved[Vec<T>::kLanes];
  v.store(lanes);
  for (int i = 0; i < Vec<T>::kLanes; ++i) moved[i] = lanes[from[i]];
  return Op::fold(v, Vec<T>::load(moved));
#else
  return Op::fold(v, Vec<T>(__builtin_shuffle(v.raw, from)));
#endif
}

// The running lanes of one row.
template <class T, class Op>
struct RowLanes {
  using V = Vec<T>;
  static constexpr int kParts = static_cast<int>(kLaneBytes) / kVectorBytes;
  V part[kParts];

  SAMEGRAD_INLINE RowLanes() {
    for (V& p : part) p = V(Op::template neutral<T>);
  }
  // Elements of one round of lanes: register k of it.
  SAMEGRAD_INLINE void fold(int k, V x) { part[k] = Op::fold(part[k], x); }

  SAMEGRAD_INLINE T join() {
    for (int half = kParts / 2; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) part[k] = Op::fold(part[k], part[k + half]);
    }
    V v = part[0];
    if constexpr (V::kLanes >= 16) v = fold_halves<T, Op>(v, 8);
    if constexpr (V::kLanes >= 8) v = fold_halves<T, Op>(v, 4);
    if constexpr (V::kLanes >= 4) v = fold_halves<T, Op>(v, 2);
    v = fold_halves<T, Op>(v, 1);
    return v.raw[0];
  }
};

// f(k, start, count): registers of a row, k being their place in the round of lanes, count < kLanes
// only for the last one.
template <class T, class F>
SAMEGRAD_INLINE void for_each_register(std::int64_t n, F f) {
  constexpr int kParts = static_cast<int>(kLaneBytes) / kVectorBytes;
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  std::int64_t i = 0;
  for (; i + kRowLanes<T> <= n; i += kRowLanes<T>) {
    for (int k = 0; k < kParts; ++k) f(k, i + k * kLanes, kLanes);
  }
  for (int k = 0; k < kParts; ++k, i += kLanes) {
    if (i >= n) return;
    f(k, i, n - i < kLanes ? n - i : kLanes);
  }
}

// A row of several blocks; block(range) reduces one.
template <class T, class Op, class Block>
T join_blocks(std::int64_t n, const Block& block) {
  return reduce_tree(kRowTree, TreeRange{0, n}, block, [](T left, T right) -> T {
    return Op::fold(Vec<T>(left), Vec<T>(right)).raw[0];
  });
}

template <class T, class Op>
SAMEGRAD_INLINE T reduce_block(const T* x, std::int64_t n) {
  RowLanes<T, Op> lanes;
  for_each_register<T>(n, [&](int k, std::int64_t start, std::int64_t count) {
    lanes.fold(k, load_n(x + start, count, Op::template neutral<T>));
  });
  return lanes.join();
}
template <class T, class Op>
SAMEGRAD_INLINE T reduce_row(const T* x, std::int64_t n) {
  if (n <= kRowBlock) [[likely]]
    return reduce_block<T, Op>(x, n);
  return join_blocks<T, Op>(
      n, [x](TreeRange of) { return reduce_block<T, Op>(x + of.begin, of.size()); });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
