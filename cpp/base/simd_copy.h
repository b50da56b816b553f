// Copying to memory that another core reads next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace samegrad {

// Of [to, to + bytes) nothing stays in the caches, and nothing is asked for: where the reader's
// cache has what was there before, an ordinary store waits until that is gone, line by line, which
// takes the longer the farther its core is away. All is there for who learns of it afterwards.
inline void copy_past_caches(std::byte* to, const std::byte* from, std::int64_t bytes) {
#if defined(__SSE2__)
  constexpr std::int64_t kLine = 64, kAhead = 32 * kLine;
  const auto head =
      std::min<std::int64_t>(bytes, -reinterpret_cast<std::intptr_t>(to) & (kLine - 1));
  std::copy_n(from, head, to);
  std::int64_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    __builtin_prefetch(from + std::min(at + kAhead, bytes));
    for (std::int64_t i = at; i < at + kLine; i += std::int64_t(sizeof(__m128i))) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
  }
  std::copy_n(from + at, bytes - at, to + at);
  _mm_sfence();
#else
  std::copy_n(from, bytes, to);
#endif
}

}  // namespace samegrad
