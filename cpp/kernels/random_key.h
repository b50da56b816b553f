// Keys that programs give themselves, and the numbers that they draw: those are kept for ever.
//
// Element e of row r is a function of (key, r, e). With E elements from the four words of each of
// sixteen lanes (64 of float32, 32 of float64 and of integers), it is part p = e % E / 16 of
// what counter c = e / E * 16 + e % 16 of the row gives:
//   w = Philox4x32-10({c % 2^32, (c >> 32) + (a << 16), r % 2^32, r >> 32}, {key[0], key[1]}), a =
//   0.
// u(p) in [0, 1) is (w[p] >> 8) / 2^24; of float64 ((w[2p] >> 5) 2^26 + (w[2p + 1] >> 6)) / 2^53.
//   uniform: u(p).
//   normal (Box-Muller): sqrt(-2 ln v) times cos(2 pi u(p + 1)) where p is even, and for the odd
//     part behind it sin, with v = ((w[p] >> 1) + 1/2) / 2^31, of float64 u(p) + 2^-54.
//   truncated_normal: the first normal number for a = 0, 1, … of at most two deviations.
//   integers: low + floor(bits (high - low) / 2^64), bits = w[2p] + 2^32 w[2p + 1]; where low and
//     high are equal, low + bits.
// tests/unit/philox.py has it in NumPy.
#pragma once

#include "kernels/table.h"

namespace samegrad {

// The stream that says so: the seed is the key of Philox itself. Other streams are numbers of
// epochs, or mixed, and not the largest number of 64 bits.
inline constexpr std::uint64_t kGivenKey = ~std::uint64_t{0};

constexpr RandomKey given_key(std::uint32_t first, std::uint32_t second) {
  return {first | std::uint64_t{second} << 32, kGivenKey};
}

}  // namespace samegrad
