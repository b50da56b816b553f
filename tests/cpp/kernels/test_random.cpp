// Random numbers: functions of (seed, stream, row, element), with the right distribution.
#include <cmath>

#include "kernels/random_key.h"
#include "kernels/variants.h"

// The generator by itself, apart from the variants.
#define SAMEGRAD_ISA_NAMESPACE plain
#include "kernels/philox.h"

namespace samegrad {
namespace {

TEST("Philox gives the published answers") {
  // Random123's known-answer vectors for philox4x32-10: counter, key, output.
  const std::uint32_t vectors[][10] = {
      {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
      {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
       0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (const auto& v : vectors) {
    plain::PhiloxBlock block{};
    for (int w = 0; w < 4; ++w) block.word[w][5] = v[w];
    plain::philox(block, v[4] | std::uint64_t{v[5]} << 32);
    for (int w = 0; w < 4; ++w) CHECK_EQ(block.word[w][5], v[6 + w]);
  }
}

struct Draw {
  const char* name;
  void (*draw)(const KernelTable&, DType, RandomKey, std::int64_t, std::int64_t, std::int64_t,
               void*);
  bool integers;
};
const Draw kDraws[] = {
    {"uniform",
     [](const KernelTable& t, DType d, RandomKey k, std::int64_t first, std::int64_t rows,
        std::int64_t n, void* y) { t.random(d).uniform(k, first, rows, n, y); },
     false},
    {"normal",
     [](const KernelTable& t, DType d, RandomKey k, std::int64_t first, std::int64_t rows,
        std::int64_t n, void* y) { t.random(d).normal(k, first, rows, n, y); },
     false},
    {"truncated_normal",
     [](const KernelTable& t, DType d, RandomKey k, std::int64_t first, std::int64_t rows,
        std::int64_t n, void* y) { t.random(d).truncated_normal(k, first, rows, n, y); },
     false},
    {"integers",
     [](const KernelTable& t, DType d, RandomKey k, std::int64_t first, std::int64_t rows,
        std::int64_t n, void* y) { t.random_integers(d)(k, first, rows, n, -5, 1000, y); },
     true},
};

TEST("a draw's element is the same whatever rows and how many elements are drawn with it") {
  const RandomKey key{.seed = 12345, .stream = 6};
  for_each_variant([&](const KernelTable& table) {
    for (const Draw& d : kDraws) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
        if (is_floating(dtype) == d.integers) continue;
        constexpr std::int64_t kRows = 5, kMost = 200;
        Sample whole(dtype, kRows * kMost);
        d.draw(table, dtype, key, 40, kRows, kMost, whole.data());
        for (const std::int64_t n : {1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 64, 65, 129}) {
          Sample part(dtype, 3 * n, 1);
          d.draw(table, dtype, key, 41, 3, n, part.data());
          for (std::int64_t i = 0; i < 3 * n; ++i) {
            CHECK(part.same_bits(i, whole, (1 + i / n) * kMost + i % n), d.name, " ",
                  name_of(dtype), " n=", n, " i=", i);
          }
        }
      }
    }
  });
}

struct Moments {
  double mean = 0, variance = 0, fourth = 0, least = 1e9, most = -1e9;
};
template <class T>
Moments moments(const std::vector<T>& x) {
  Moments m;
  const double n = static_cast<double>(x.size());
  for (const T v : x) m.mean += v / n;
  for (const T v : x) {
    const double d = v - m.mean;
    m.variance += d * d / n;
    m.fourth += d * d * d * d / n;
    m.least = std::min<double>(m.least, v);
    m.most = std::max<double>(m.most, v);
  }
  return m;
}

template <class T>
void check_distributions(const RandomKernels& random) {
  const RandomKey key{.seed = 1, .stream = 2};
  std::vector<T> x(400000);
  const auto n = static_cast<std::int64_t>(x.size());
  random.uniform(key, 0, 4, n / 4, x.data());
  Moments m = moments(x);
  CHECK(std::fabs(m.mean - 0.5) < 0.003 && std::fabs(m.variance - 1.0 / 12) < 0.001);
  CHECK(m.least >= 0 && m.most < 1);
  random.normal(key, 0, 4, n / 4, x.data());
  m = moments(x);
  CHECK(std::fabs(m.mean) < 0.008 && std::fabs(m.variance - 1) < 0.01, m.mean, " ", m.variance);
  CHECK(std::fabs(m.fourth - 3) < 0.08 && m.most > 4 && m.least < -4, m.fourth);
  random.truncated_normal(key, 0, 4, n / 4, x.data());
  m = moments(x);
  CHECK(m.least >= -2 && m.most <= 2);
  CHECK(std::fabs(m.mean) < 0.008 && std::fabs(m.variance - 0.7737) < 0.01, m.variance);
  random.normal(key, 0, n, 1, x.data());  // one element per row
  m = moments(x);
  CHECK(std::fabs(m.mean) < 0.008 && std::fabs(m.variance - 1) < 0.01, m.mean, " ", m.variance);
}

TEST("a part of a row has the elements that the whole row has") {
  const RandomKey key{.seed = 12345, .stream = 6};
  for_each_variant([&](const KernelTable& table) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const std::int64_t size : {1, 5, 16, 17, 64, 65, 300}) {
        Sample whole(dtype, size);
        table.random(dtype).uniform(key, 41, 1, size, whole.data());
        for (std::int64_t first = 0; first < size; first += 7) {
          for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, size - first}) {
            Sample part(dtype, n, 1);
            table.random(dtype).uniform_part(key, 41, first, n, part.data());
            for (std::int64_t i = 0; i < n; ++i) {
              CHECK(part.same_bits(i, whole, first + i), name_of(dtype), " first=", first, " n=", n,
                    " i=", i);
            }
          }
        }
      }
    }
  });
}

TEST("draws have the moments and bounds of their distribution") {
  for_each_variant([](const KernelTable& table) {
    check_distributions<float>(table.random(DType::kFloat32));
    check_distributions<double>(table.random(DType::kFloat64));
  });
}

TEST("neighbouring rows, streams and seeds are unlike") {
  for_each_variant([](const KernelTable& table) {
    double x[5];
    const RandomKernels& random = table.random(DType::kFloat64);
    random.uniform({1, 1}, 0, 2, 1, x);
    random.uniform({1, 2}, 0, 1, 1, x + 2);
    random.uniform({2, 1}, 0, 1, 1, x + 3);
    random.uniform({1, 1}, std::int64_t{1} << 32, 1, 1, x + 4);
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < i; ++j) CHECK(std::fabs(x[i] - x[j]) > 1e-9);
    }
  });
}

TEST("a given key is that of Philox, row and place are its counter") {
  const std::int64_t row = (std::int64_t{5} << 32) + 3;
  plain::PhiloxBlock block{};
  block.word[0][0] = 16 + 4;  // element 64 + 2 · 16 + 4 of the row
  block.word[2][0] = 3;
  block.word[3][0] = 5;
  plain::philox(block, 0x2222222211111111u);
  const std::uint64_t bits = block.word[2][0] | std::uint64_t{block.word[3][0]} << 32;
  for_each_variant([&](const KernelTable& table) {
    const RandomKey key = given_key(0x11111111, 0x22222222);
    std::vector<float> x(200);
    table.random(DType::kFloat32).uniform(key, row, 1, 200, x.data());
    CHECK_EQ(x[100], static_cast<float>(block.word[2][0] >> 8) * 0x1p-24f);
    std::vector<std::uint64_t> all(64);  // of 32 to a block: element 32 + 16 + 4
    table.random_integers(DType::kUInt64)(key, row, 1, 64, 0, 0, all.data());
    CHECK_EQ(all[52], bits);
    std::vector<std::uint32_t> upper(64);
    table.random_integers(DType::kUInt32)(key, row, 1, 64, 0, std::int64_t{1} << 32, upper.data());
    CHECK_EQ(upper[52], block.word[3][0]);
  });
}

TEST("random integers reach both ends of their range and nothing beyond") {
  for_each_variant([](const KernelTable& table) {
    std::vector<std::int64_t> x(2000);
    table.random_integers(DType::kInt64)({3, 4}, 0, 10, 200, -3, 4, x.data());
    int seen[7] = {};
    for (const std::int64_t v : x) {
      CHECK(v >= -3 && v < 4);
      ++seen[v + 3];
    }
    for (const int count : seen) CHECK(count > 200 && count < 380);
    constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    table.random_integers(DType::kInt64)({3, 4}, 0, 10, 200, kMin, kMax, x.data());
    CHECK(x[0] != x[1]);
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
