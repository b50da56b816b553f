// Hashes of arrays by position: whoever has a part of an array adds its own, whatever the tiles,
// threads, replicas and processes.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// The key of a word is its index times kStep plus the upper half of the index times kUpperStep.
constexpr std::uint32_t kStep = 0x9E3779B1, kUpperStep = 0x85EBCA77, kFactor = 0xC2B2AE3D;

// One-to-one in the word for each key, but that 0 and the key itself give 0: h(2h + 1) is, in its
// lower half, and so are the steps before.
inline std::uint64_t mix(std::uint32_t word, std::uint32_t key) {
  std::uint32_t h = (word ^ key) * kFactor;
  h ^= h >> 15;
  h = word == 0 ? 0 : h;
  return std::uint64_t(h) * std::uint64_t(2 * h + 1);
}

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

// Infinity's bits without the sign: those above are NaN.
template <class T>
inline constexpr Bits<T> kInfinity = 0;
template <>
inline constexpr std::uint64_t kInfinity<double> = 0x7FF0'0000'0000'0000;
template <>
inline constexpr std::uint32_t kInfinity<float> = 0x7F80'0000;
template <>
inline constexpr std::uint16_t kInfinity<Float16> = 0x7C00;
template <>
inline constexpr std::uint16_t kInfinity<BFloat16> = 0x7F80;

// One quiet NaN stands for all.
template <class T>
inline Bits<T> canonical(Bits<T> bits) {
  if constexpr (kInfinity<T> == 0) {
    return bits;
  } else {
    constexpr auto kWithoutSign = Bits<T>(Bits<T>(~Bits<T>(0)) >> 1);
    constexpr auto kNaN = Bits<T>(kInfinity<T> | (Bits<T>(1) << (std::countr_zero(kInfinity<T>) - 1)));
    return Bits<T>(bits & kWithoutSign) > kInfinity<T> ? kNaN : bits;
  }
}

// Elements whose words have one upper half of the index.
template <class T>
std::uint64_t hash_run(const Bits<T>* x, std::int64_t n, std::uint32_t key) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Bits<T> bits = canonical<T>(x[i]);
    if constexpr (sizeof(T) == 8) {
      const std::uint32_t at = key + 2 * std::uint32_t(i) * kStep;
      sum += mix(std::uint32_t(bits), at) + mix(std::uint32_t(bits >> 32), at + kStep);
    } else {
      sum += mix(bits, key + std::uint32_t(i) * kStep);
    }
  }
  return sum;
}

template <class T>
std::uint64_t hash(const void* x, std::int64_t n, std::int64_t first) {
  constexpr std::uint64_t kWords = sizeof(T) == 8 ? 2 : 1;
  constexpr std::uint64_t kOfHalf = (std::uint64_t(1) << 32) / kWords;
  const auto* elements = static_cast<const Bits<T>*>(x);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < n;) {
    const std::uint64_t index = std::uint64_t(first + i) * kWords;
    const std::uint64_t left = kOfHalf - std::uint64_t(first + i) % kOfHalf;
    const auto count = std::int64_t(std::min(left, std::uint64_t(n - i)));
    const std::uint32_t key =
        std::uint32_t(index) * kStep + std::uint32_t(index >> 32) * kUpperStep;
    sum += hash_run<T>(elements + i, count, key);
    i += count;
  }
  return sum;
}

}  // namespace

HashKernel hash_kernel(DType dtype) {
  return kernel_for<kAll>(dtype, []<class T>() -> HashKernel { return hash<T>; });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
