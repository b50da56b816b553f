// Hashes of arrays by position: whoever has a part of an array adds its own, whatever the tiles,
// threads, replicas and processes.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "kernels/simd.h"
#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// The key of a word is its index times kStep plus the upper half of the index times kUpperStep.
constexpr std::uint32_t kStep = 0x9E3779B1, kUpperStep = 0x85EBCA77, kFactor = 0xC2B2AE3D;
constexpr std::int64_t kLanes = kVectorBytes / 4;

using Lanes [[gnu::vector_size(kVectorBytes)]] = std::uint32_t;
using SignedLanes [[gnu::vector_size(kVectorBytes)]] = std::int32_t;

// One-to-one in the word for each key: so are h(2h + 1) in its lower half and the steps before.
inline std::uint64_t mix(std::uint32_t word, std::uint32_t key) {
  std::uint32_t h = (word ^ key) * kFactor;
  h ^= h >> 15;
  const std::uint32_t odd = 2 * h + 1;
  return std::uint64_t(h) * odd;
}

SAMEGRAD_INLINE Words mix(Lanes words, Lanes keys) {
  Lanes h = (words ^ keys) * kFactor;
  h ^= h >> 15;
  const Lanes odd = 2 * h + 1;
  const Words a = reinterpret_cast<Words>(h), b = reinterpret_cast<Words>(odd);
  return mul_even(a, b) + mul_even(a >> 32, b >> 32);
}

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

// Infinity's bits without the sign: those above are NaN. 0: there are none.
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

// The quiet NaN that stands for all, and the same of any bits.
template <class T>
inline constexpr auto kNaN = Bits<T>(kInfinity<T> | kInfinity<T> >> 1);
template <class T>
inline Bits<T> canonical(Bits<T> bits) {
  constexpr auto kWithoutSign = Bits<T>(Bits<T>(~Bits<T>(0)) >> 1);
  if constexpr (kInfinity<T> == 0) return bits;
  return Bits<T>(bits & kWithoutSign) > kInfinity<T> ? kNaN<T> : bits;
}
SAMEGRAD_INLINE Lanes canonical(Lanes bits) {
  const SignedLanes magnitude = reinterpret_cast<SignedLanes>(bits & 0x7FFF'FFFFu);
  return magnitude > std::int32_t(kInfinity<float>) ? Lanes{} + kNaN<float> : bits;
}

// Words of one upper half of the index, the first one's key being `key`.
template <bool kIsFloat>
std::uint64_t hash_words(const std::uint32_t* words, std::int64_t n, std::uint32_t key) {
  Lanes keys;
  for (int i = 0; i < int(kLanes); ++i) keys[i] = key + std::uint32_t(i) * kStep;
  Words sums = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes lanes;
    std::memcpy(&lanes, words + i, sizeof lanes);
    if constexpr (kIsFloat) lanes = canonical(lanes);
    sums += mix(lanes, keys);
    keys += std::uint32_t(kLanes) * kStep;
  }
  std::uint64_t sum = 0;
  for (int lane = 0; lane < int(kLanes) / 2; ++lane) sum += sums[lane];
  for (; i < n; ++i) {
    std::uint32_t word;
    std::memcpy(&word, words + i, sizeof word);
    sum += mix(kIsFloat ? canonical<float>(word) : word, key + std::uint32_t(i) * kStep);
  }
  return sum;
}

template <class T>
inline constexpr std::int64_t kWords = sizeof(T) == 8 ? 2 : 1;

// Elements whose words have one upper half of the index.
template <class T>
std::uint64_t hash_run(const Bits<T>* x, std::int64_t n, std::uint32_t key) {
  if constexpr (sizeof(T) == 4) {
    return hash_words<std::is_same_v<T, float>>(x, n, key);
  } else {
    constexpr std::int64_t kBlock = 256;
    std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t> block[kBlock];
    std::uint32_t words[kBlock * kWords<T>];
    std::uint64_t sum = 0;
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, n - begin);
      for (std::int64_t i = 0; i < count; ++i) block[i] = canonical<T>(x[begin + i]);
      std::memcpy(words, block, std::size_t(count * kWords<T> * 4));
      sum += hash_words<false>(words, count * kWords<T>,
                               key + std::uint32_t(begin * kWords<T>) * kStep);
    }
    return sum;
  }
}

template <class T>
std::uint64_t hash(const void* x, std::int64_t n, std::int64_t first) {
  constexpr std::int64_t kOfHalf = (std::int64_t(1) << 32) / kWords<T>;
  const auto* elements = static_cast<const Bits<T>*>(x);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t at = first + i;
    const std::int64_t count = std::min(kOfHalf - at % kOfHalf, n - i);
    const std::uint32_t key =
        std::uint32_t(at * kWords<T>) * kStep + std::uint32_t((at * kWords<T>) >> 32) * kUpperStep;
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
