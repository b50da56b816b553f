// Advanced SIMD (AArch64), whose registers have 16 bytes on every processor.
#pragma once

#include <arm_neon.h>

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
inline constexpr int kVectorBytes = 16;
inline constexpr int kTileRows = 8;  // 16 accumulators, 2 columns of B and a value of A: 19 of 32
inline constexpr int kTreeRows = 4;
inline constexpr int kTreeVectors = 2;
inline constexpr int kTreeLevels = 3;
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

#include "kernels/simd_lanes.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// vmaxq and vminq return NaN and order zeros: max_or_second and min_or_second stay the
// selections of kernels/vector.h.

template <class T>
SAMEGRAD_INLINE bool any(Mask<T> mask) {
  return vmaxvq_u32(reinterpret_cast<uint32x4_t>(mask.raw)) != 0;
}

SAMEGRAD_INLINE Vec<float> sqrt(Vec<float> x) {
  return vsqrtq_f32(x.raw);
}
SAMEGRAD_INLINE Vec<double> sqrt(Vec<double> x) {
  return vsqrtq_f64(x.raw);
}
SAMEGRAD_INLINE Vec<float> floor(Vec<float> x) {
  return vrndmq_f32(x.raw);
}
SAMEGRAD_INLINE Vec<double> floor(Vec<double> x) {
  return vrndmq_f64(x.raw);
}
SAMEGRAD_INLINE Vec<float> ceil(Vec<float> x) {
  return vrndpq_f32(x.raw);
}
SAMEGRAD_INLINE Vec<double> ceil(Vec<double> x) {
  return vrndpq_f64(x.raw);
}
SAMEGRAD_INLINE Vec<float> round(Vec<float> x) {
  return vrndnq_f32(x.raw);
}
SAMEGRAD_INLINE Vec<double> round(Vec<double> x) {
  return vrndnq_f64(x.raw);
}

SAMEGRAD_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return vfmaq_f32(c.raw, a.raw, b.raw);
}
SAMEGRAD_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return vfmaq_f64(c.raw, a.raw, b.raw);
}

SAMEGRAD_INLINE Words mul_even(Words a, Words b) {
  return reinterpret_cast<Words>(vmull_u32(vmovn_u64(reinterpret_cast<uint64x2_t>(a)),
                                           vmovn_u64(reinterpret_cast<uint64x2_t>(b))));
}

// narrow and widen look bytes up in a register; an index beyond it gives 0.
template <class T>
SAMEGRAD_INLINE uint8x16_t narrow(typename Vec<T>::Int places) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  uint8x16_t lowest = {};
  for (unsigned i = 0; i < 16; ++i) lowest[i] = static_cast<std::uint8_t>(i * sizeof(T));
  return vqtbl1q_u8(reinterpret_cast<uint8x16_t>(places), lowest);
}
template <class T>
SAMEGRAD_INLINE typename Vec<T>::Int widen(const std::uint8_t* from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  std::uint64_t packed = 0;
  std::memcpy(&packed, from, static_cast<std::size_t>(Vec<T>::kLanes));
  uint8x16_t lane = {};
  for (unsigned i = 0; i < 16; ++i) lane[i] = i % sizeof(T) == 0 ? i / sizeof(T) : 0xff;
  const uint8x16_t bytes = vreinterpretq_u8_u64(vsetq_lane_u64(packed, vdupq_n_u64(0), 0));
  return reinterpret_cast<typename Vec<T>::Int>(vqtbl1q_u8(bytes, lane));
}

inline constexpr bool kConvertsHalves = true;
SAMEGRAD_INLINE Vec<float> widen_halves(const Float16* from) {
  float16x4_t halves;
  std::memcpy(&halves, from, sizeof halves);
  return vcvt_f32_f16(halves);
}
SAMEGRAD_INLINE void narrow_to_halves(Vec<float> x, Float16* to) {
  const float16x4_t halves = vcvt_f16_f32(x.raw);
  std::memcpy(to, &halves, sizeof halves);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
