// The registers of the variant that is compiled, and what its instructions do with them.
//
// A file per instruction set, named in the variant's row of variants.def. Each has the same
// primitives:
//   kVectorBytes          of a register, before kernels/vector.h makes Vec, Mask and Words of it
//   kTileRows             rows of a product's tile: as its accumulators fill the registers
//   kTreeRows, kTreeVectors, kTreeLevels  rows of a tile that sums examples by the tree, registers
//                         of a row, and the levels of the tree whose sums are variables of one
//                         routine, registers as far as there are any. Where they are wide, a row is
//                         one, as the columns of B have to stay in the first cache
//   any                   whether a mask has a lane that is true
//   max_or_second, min_or_second   for floats; others have those of kernels/vector.h
//   sqrt, floor, ceil, round              rounded as IEEE 754 says; round: to even
//   fma                   a * b + c, rounded once where there is such an instruction; for products
//                         and the insides of functions only
//   load_partial, store_partial   the first n lanes, 0 <= n <= kLanes, and no byte beyond x + n;
//                                 further loaded lanes are `fill`
//   mul_even   of the lower 32 bits of Words
//   narrow, widen         integers as wide as T to kLanes bytes, the first of 16, and back
//   kConvertsHalves       whether widen_halves and narrow_to_halves are there: registers of float
//                         from and to float16; if not, base/half.h has the same bits
#pragma once

#ifndef SAMEGRAD_SIMD_FILE  // the build gives that of variants.def
#define SAMEGRAD_SIMD_FILE "kernels/simd_generic.h"
#endif
#include SAMEGRAD_SIMD_FILE

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// A whole register, or what is left of one.
template <class T>
SAMEGRAD_INLINE Vec<T> load_n(const T* x, std::int64_t left, std::type_identity_t<T> fill) {
  return left >= Vec<T>::kLanes ? Vec<T>::load(x) : load_partial(x, left, fill);
}
template <class T>
SAMEGRAD_INLINE void store_n(Vec<T> v, T* y, std::int64_t left) {
  if (left >= Vec<T>::kLanes) [[likely]]
    return v.store(y);
  store_partial(v, y, left);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
