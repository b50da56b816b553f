// Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011), sixteen counters at a time.
#pragma once

#include <cstdint>

#include "kernels/simd.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

inline constexpr int kPhiloxLanes = 16;

// word[w][lane]: word w of the lane's counter, or of its output.
struct PhiloxBlock {
  std::uint32_t word[4][kPhiloxLanes];
};

// Words in the lower halves of 64-bit lanes; whatever is in the upper halves never matters.
using PhiloxWords = Words;
inline constexpr int kWordsPerVector = kVectorBytes / 8;

// Ten rounds on the counters of kWordsPerVector lanes.
SAMEGRAD_INLINE void philox_rounds(PhiloxWords (&c)[4], std::uint64_t key) {
  PhiloxWords key0 = PhiloxWords{} + (key & 0xffffffffu), key1 = PhiloxWords{} + (key >> 32);
  for (int round = 0; round < 10; ++round) {
    const PhiloxWords p0 = mul_even(c[0], PhiloxWords{} + 0xD2511F53u);
    const PhiloxWords p1 = mul_even(c[2], PhiloxWords{} + 0xCD9E8D57u);
    c[0] = (p1 >> 32) ^ c[1] ^ key0;
    c[1] = p1;
    c[2] = (p0 >> 32) ^ c[3] ^ key1;
    c[3] = p0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

[[gnu::noinline]] inline void philox(PhiloxBlock& b, std::uint64_t key) {
  std::uint64_t wide[4][kPhiloxLanes];
  for (int w = 0; w < 4; ++w) {
    for (int i = 0; i < kPhiloxLanes; ++i) wide[w][i] = b.word[w][i];
  }
  for (int start = 0; start < kPhiloxLanes; start += kWordsPerVector) {
    PhiloxWords c[4];
    for (int w = 0; w < 4; ++w) std::memcpy(&c[w], wide[w] + start, sizeof c[w]);
    philox_rounds(c, key);
    for (int w = 0; w < 4; ++w) std::memcpy(wide[w] + start, &c[w], sizeof c[w]);
  }
  for (int w = 0; w < 4; ++w) {
    for (int i = 0; i < kPhiloxLanes; ++i) b.word[w][i] = static_cast<std::uint32_t>(wide[w][i]);
  }
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
