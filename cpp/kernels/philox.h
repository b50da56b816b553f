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

SAMEGRAD_INLINE void philox_round(PhiloxBlock& b, std::uint32_t key0, std::uint32_t key1) {
  for (int i = 0; i < kPhiloxLanes; ++i) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * b.word[0][i];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * b.word[2][i];
    b.word[0][i] = static_cast<std::uint32_t>(p1 >> 32) ^ b.word[1][i] ^ key0;
    b.word[1][i] = static_cast<std::uint32_t>(p1);
    b.word[2][i] = static_cast<std::uint32_t>(p0 >> 32) ^ b.word[3][i] ^ key1;
    b.word[3][i] = static_cast<std::uint32_t>(p0);
  }
}

inline void philox(PhiloxBlock& b, std::uint64_t key) {
  std::uint32_t key0 = static_cast<std::uint32_t>(key);
  std::uint32_t key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    philox_round(b, key0, key1);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
