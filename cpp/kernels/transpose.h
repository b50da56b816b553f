// A square block of as many rows as a register has lanes, transposed in registers.
#pragma once

#include <utility>

#include "kernels/simd.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// Shuffles of two registers that are one instruction each: inside of parts of 16 bytes, or of whole
// parts.
template <class T, class Lanes = std::make_integer_sequence<int, Vec<T>::kLanes>>
struct Shuffle;
template <class T, int... kLane>
struct Shuffle<T, std::integer_sequence<int, kLane...>> {
  using Raw = typename Vec<T>::Raw;
  static constexpr int kPart = 16 / static_cast<int>(sizeof(T));

  // Part by part, lanes of a and b by turns, from the lower half of the part or from the upper one.
  static constexpr int zipped(int lane, int half) {
    const int first = lane / kPart * kPart + half * (kPart / 2);
    return lane % 2 * Vec<T>::kLanes + first + lane % kPart / 2;
  }
  template <int kHalf>
  static SAMEGRAD_INLINE Raw zip(Raw a, Raw b) {
    return __builtin_shufflevector(a, b, zipped(kLane, kHalf)...);
  }

  // The even parts of a and then of b, or the odd ones.
  static constexpr int unzipped(int lane, int odd) {
    return (lane / kPart * 2 + odd) * kPart + lane % kPart;
  }
  template <int kOdd>
  static SAMEGRAD_INLINE Raw unzip(Raw a, Raw b) {
    return __builtin_shufflevector(a, b, unzipped(kLane, kOdd)...);
  }
};

// Pairs of rows whose numbers differ in one bit: halves of the parts first, then the parts.
template <int kBit, class T>
SAMEGRAD_INLINE void transpose_from(Vec<T> (&rows)[Vec<T>::kLanes]) {
  using S = Shuffle<T>;
  constexpr bool kInside = kBit < S::kPart;
#pragma GCC unroll 16
  for (int i = 0; i < Vec<T>::kLanes; ++i) {
    if ((i & kBit) != 0) continue;
    const auto a = rows[i].raw, b = rows[i + kBit].raw;
    if constexpr (kInside) {
      rows[i].raw = S::template zip<0>(a, b);
      rows[i + kBit].raw = S::template zip<1>(a, b);
    } else {
      rows[i].raw = S::template unzip<0>(a, b);
      rows[i + kBit].raw = S::template unzip<1>(a, b);
    }
  }
  constexpr int kNext = !kInside ? 2 * kBit : kBit > 1 ? kBit / 2 : S::kPart;
  if constexpr (kNext < Vec<T>::kLanes) transpose_from<kNext>(rows);
}

// Lane j of row i becomes lane i of row j.
template <class T>
SAMEGRAD_INLINE void transpose(Vec<T> (&rows)[Vec<T>::kLanes]) {
  transpose_from<Shuffle<T>::kPart / 2>(rows);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
