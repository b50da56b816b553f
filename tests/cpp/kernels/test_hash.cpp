// Hashes by position against their definition, in parts and over variants.
#include <cstdint>

#include "kernels/variants.h"

namespace samegrad {
namespace {

std::uint64_t hash_of_word(std::uint32_t word, std::uint64_t index) {
  const std::uint32_t key =
      std::uint32_t(index) * 0x9E3779B1u + std::uint32_t(index >> 32) * 0x85EBCA77u;
  std::uint32_t h = (word ^ key) * 0xC2B2AE3Du;
  h ^= h >> 15;
  return std::uint64_t(h) * std::uint32_t(2 * h + 1);
}

// Words of 32 bits of an element, one quiet NaN standing for all.
std::vector<std::uint32_t> words_of(DType dtype, const Sample& x, std::int64_t i) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, x.at(i), x.size());
  return visit(dtype, [&]<class T>() -> std::vector<std::uint32_t> {
    if constexpr (kIsOneOf<T, kFloats>) {
      T value;
      std::memcpy(&value, x.at(i), sizeof value);
      if (std::isnan(double(value))) {
        const T nan = T(std::numeric_limits<float>::quiet_NaN());
        bits = 0;
        std::memcpy(&bits, &nan, sizeof nan);
      }
    }
    if (x.size() < 8) return {std::uint32_t(bits)};
    return {std::uint32_t(bits), std::uint32_t(bits >> 32)};
  });
}

std::uint64_t expected(DType dtype, const Sample& x, std::int64_t first) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const std::vector<std::uint32_t> words = words_of(dtype, x, i);
    for (std::size_t w = 0; w < words.size(); ++w) {
      const auto index = std::uint64_t(first + i) * words.size() + w;
      sum += hash_of_word(words[w], index);
    }
  }
  return sum;
}

TEST("a hash is the sum of the hashes of the words") {
  std::mt19937 generator(7);
  for_each_variant([&](const KernelTable& table) {
    for (const DType dtype : kAllDTypes) {
      const HashKernel hash = table.hash(dtype);
      for (const std::int64_t n : {0, 1, 3, 16, 37, 255, 256, 257, 1000}) {
        const Sample x = Sample::random(dtype, n, generator);
        for (const std::int64_t first : {std::int64_t(0), std::int64_t(5), std::int64_t(1) << 31,
                                         (std::int64_t(1) << 32) - 11, std::int64_t(3) << 33}) {
          CHECK_EQ(hash(x.data(), n, first), expected(dtype, x, first));
        }
      }
    }
  });
}

TEST("hashes of parts add up to that of the whole") {
  std::mt19937 generator(8);
  for_each_variant([&](const KernelTable& table) {
    for (const DType dtype : kAllDTypes) {
      const HashKernel hash = table.hash(dtype);
      const Sample x = Sample::random(dtype, 500, generator);
      const std::uint64_t whole = hash(x.data(), 500, 0);
      for (const std::int64_t cut : {1, 7, 64, 300, 499}) {
        const Sample left = x.part(0, cut, 1), right = x.part(cut, 500 - cut, 3);
        CHECK_EQ(hash(right.data(), 500 - cut, cut) + hash(left.data(), cut, 0), whole);
      }
    }
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
