// Operations that the x86-64 variants share, included after their own instructions.
// SAMEGRAD_X86(name, arguments...) is the intrinsic of the name for registers of the variant.
#pragma once

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

SAMEGRAD_INLINE Vec<float> max_or_second(Vec<float> a, Vec<float> b) {
  return SAMEGRAD_X86(max_ps, a.raw, b.raw);
}
SAMEGRAD_INLINE Vec<double> max_or_second(Vec<double> a, Vec<double> b) {
  return SAMEGRAD_X86(max_pd, a.raw, b.raw);
}
SAMEGRAD_INLINE Vec<float> min_or_second(Vec<float> a, Vec<float> b) {
  return SAMEGRAD_X86(min_ps, a.raw, b.raw);
}
SAMEGRAD_INLINE Vec<double> min_or_second(Vec<double> a, Vec<double> b) {
  return SAMEGRAD_X86(min_pd, a.raw, b.raw);
}

SAMEGRAD_INLINE Vec<float> sqrt(Vec<float> x) {
  return SAMEGRAD_X86(sqrt_ps, x.raw);
}
SAMEGRAD_INLINE Vec<double> sqrt(Vec<double> x) {
  return SAMEGRAD_X86(sqrt_pd, x.raw);
}

template <class T>
SAMEGRAD_INLINE Vec<T> floor(Vec<T> x) {
  return round_to<_MM_FROUND_TO_NEG_INF>(x);
}
template <class T>
SAMEGRAD_INLINE Vec<T> ceil(Vec<T> x) {
  return round_to<_MM_FROUND_TO_POS_INF>(x);
}
template <class T>
SAMEGRAD_INLINE Vec<T> round(Vec<T> x) {
  return round_to<_MM_FROUND_TO_NEAREST_INT>(x);
}

// Exactly as many bytes as there are lanes, through an integer: a longer read of a short write
// waits for memory.
template <class T>
SAMEGRAD_INLINE typename Vec<T>::Int widen(const std::uint8_t* from) {
  using Int = typename Vec<T>::Int;
  if constexpr (Vec<T>::kLanes == 16) {
    return reinterpret_cast<Int>(
        widen_bytes<T>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  } else {
    std::uint64_t packed = 0;
    std::memcpy(&packed, from, static_cast<std::size_t>(Vec<T>::kLanes));
    return reinterpret_cast<Int>(widen_bytes<T>(_mm_cvtsi64_si128(static_cast<long long>(packed))));
  }
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
