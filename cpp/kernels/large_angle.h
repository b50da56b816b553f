// Angles beyond Maths<T>::kTrigLimit, after Payne and Hanek, "Radian reduction for trigonometric
// functions", ACM SIGNUM 18, 1983: in integers, the same on every processor.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// x = quarter * π/2 + rest, |rest| <= π/4, where multiples of 2π are left out of the quarter.
struct LargeAngle {
  double rest;
  int quarter;
};

// 2/π after a word of zeros: bit i after the point has the weight 2^-i.
inline constexpr std::uint64_t kTwoOverPiBits[] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
};

// Words [0, 3) of the product of 192 bits and a number, the lowest word first.
inline std::array<std::uint64_t, 3> low_product(const std::array<std::uint64_t, 3>& a,
                                                std::uint64_t b) {
  __extension__ typedef unsigned __int128 Wide;
  std::array<std::uint64_t, 3> result;
  Wide carry = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    carry += Wide(a[i]) * b;
    result[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  return result;
}

// Reduces x >= 1; infinity gives NaN. Bits of 2/π whose weights make whole turns are left out. The
// next 192 bits, multiplied by the 53 of x, leave 137 behind the point. No double is nearer than
// 2^-62 to a multiple of π/2.
inline LargeAngle reduce_large(double x) {
  __extension__ typedef unsigned __int128 Wide;
  if (x - x != 0) return {x - x, 0};
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int exponent = int(bits >> 52 & 0x7ff) - 1075;
  const std::uint64_t mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;
  // The first bit taken has the weight 2 after the multiplication by 2^exponent.
  const int first = 64 + exponent - 2, word = first / 64, shift = first % 64;
  std::array<std::uint64_t, 3> window;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t high = kTwoOverPiBits[word + i], low = kTwoOverPiBits[word + i + 1];
    window[std::size_t(2 - i)] = shift == 0 ? high : high << shift | low >> (64 - shift);
  }
  std::array<std::uint64_t, 3> angle = low_product(window, mantissa);
  int quarter = int(angle[2] >> 62);
  // The fraction of a quarter as a signed number: above a half it is the next quarter's.
  angle[2] = angle[2] << 2 | angle[1] >> 62;
  angle[1] = angle[1] << 2 | angle[0] >> 62;
  angle[0] <<= 2;
  const bool is_above = angle[2] >> 63 != 0;
  if (is_above) {
    quarter = (quarter + 1) & 3;
    for (std::uint64_t& part : angle) part = ~part;  // the sign changed, but for the last bit
  }
  const int zeros = angle[2] != 0 ? std::countl_zero(angle[2]) : 64 + std::countl_zero(angle[1]);
  const std::uint64_t top = zeros >= 64 ? angle[1] : angle[2],
                      next = zeros >= 64 ? angle[0] : angle[1];
  const int left = zeros % 64;
  const std::uint64_t fraction = left == 0 ? top : top << left | next >> (64 - left);
  const std::uint64_t half_pi = 0xc90fdaa22168c235;  // π/2 * 2^63
  const auto product = static_cast<std::uint64_t>(Wide(fraction) * half_pi >> 64);
  const double rest = std::ldexp(static_cast<double>(product), -63 - zeros);
  return {is_above ? -rest : rest, quarter};
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
