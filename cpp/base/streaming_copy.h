// Copying to memory that another core reads next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace samegrad {

// Copies with streaming stores, which neither read nor keep [to, to + bytes) in the caches. An
// ordinary store waits, line by line, for a copy of the line in the reader's cache. That wait is
// longer the farther away the reader's core is. All bytes are visible to a thread that learns of
// the copy afterwards.
inline void streaming_copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
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
