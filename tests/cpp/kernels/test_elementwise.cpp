// Elementwise kernels: an element's bits depend on its values alone, in every variant.
#include <cmath>
#include <cstdint>
#include <set>

#include "kernels/variants.h"

namespace samegrad {
namespace {

const std::vector<std::int64_t> kCounts = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                           13, 15, 16, 17, 23, 31, 32, 33, 40, 64, 65, 257};
constexpr std::int64_t kMost = 300;

DType result_of(UnaryFn fn, DType x) {
  const std::string name = name_of(fn);
  return name.starts_with("is_") ? DType::kBool : x;
}
DType result_of(BinaryFn fn, DType x) {
  static const std::set<std::string> kTruth = {"equal",      "not_equal", "less",
                                               "less_equal", "greater",   "greater_equal"};
  return kTruth.contains(name_of(fn)) ? DType::kBool : x;
}

template <class F>
void for_each_unary(F f) {
  for_each_variant([&](const KernelTable& table) {
    for (int k = 0; k < static_cast<int>(UnaryFn::kCount); ++k) {
      for (const DType dtype : kAllDTypes) {
        const auto fn = static_cast<UnaryFn>(k);
        const UnaryKernel kernel = table.unary.find(fn, dtype);
        if (kernel != nullptr) f(kernel, fn, dtype);
      }
    }
  });
}
template <class F>
void for_each_binary(F f) {
  for_each_variant([&](const KernelTable& table) {
    for (int k = 0; k < static_cast<int>(BinaryFn::kCount); ++k) {
      for (const DType dtype : kAllDTypes) {
        const auto fn = static_cast<BinaryFn>(k);
        const BinaryKernel kernel = table.binary.find(fn, dtype);
        if (kernel != nullptr) f(kernel, fn, dtype);
      }
    }
  });
}

TEST("a unary result has the same bits at any count, position, alignment and in place") {
  std::mt19937 generator(1);
  for_each_unary([&](UnaryKernel kernel, UnaryFn fn, DType dtype) {
    const Sample x = Sample::random(dtype, kMost, generator);
    Sample whole(result_of(fn, dtype), kMost);
    kernel(x.data(), whole.data(), kMost);
    for (const std::int64_t n : kCounts) {
      const std::int64_t first = static_cast<std::int64_t>(generator() % (kMost - n));
      Sample part = x.part(first, n, static_cast<std::int64_t>(generator() % 5));
      Sample y(result_of(fn, dtype), n, static_cast<std::int64_t>(generator() % 5));
      kernel(part.data(), y.data(), n);
      const bool in_place = y.size() == part.size();
      if (in_place) kernel(part.data(), part.data(), n);
      for (std::int64_t i = 0; i < n; ++i) {
        CHECK(y.same_bits(i, whole, first + i), name_of(fn), " ", name_of(dtype), " n=", n);
        CHECK(!in_place || part.same_bits(i, whole, first + i), name_of(fn), " in place, n=", n);
      }
    }
  });
}

TEST("a binary result has the same bits at any count, position, alignment, step and in place") {
  std::mt19937 generator(2);
  for_each_binary([&](BinaryKernel kernel, BinaryFn fn, DType dtype) {
    const Sample a = Sample::random(dtype, kMost, generator);
    const Sample b = Sample::random(dtype, kMost, generator);
    for (const std::int64_t n : kCounts) {
      for (int steps = 0; steps < 4; ++steps) {
        const int a_step = steps & 1, b_step = steps >> 1;
        const std::int64_t first = static_cast<std::int64_t>(generator() % (kMost - n));
        Sample left = a.part(first, n, static_cast<std::int64_t>(generator() % 5));
        Sample right = b.part(first, n, static_cast<std::int64_t>(generator() % 5));
        Sample y(result_of(fn, dtype), n, static_cast<std::int64_t>(generator() % 5));
        kernel(left.data(), right.data(), y.data(), n, a_step, b_step);
        std::vector<Sample> ones;
        for (std::int64_t i = 0; i < n; ++i) {
          Sample one(result_of(fn, dtype), 1);
          kernel(left.at(i * a_step), right.at(i * b_step), one.data(), 1, 1, 1);
          CHECK(y.same_bits(i, one, 0), name_of(fn), " ", name_of(dtype), " n=", n, " i=", i);
        }
        if (y.size() != left.size() || a_step == 0) continue;
        kernel(left.data(), right.data(), left.data(), n, a_step, b_step);
        for (std::int64_t i = 0; i < n; ++i) {
          CHECK(left.same_bits(i, y, i), name_of(fn), " in place, n=", n);
        }
      }
    }
  });
}

TEST("a kernel writes its n elements and no others") {
  std::mt19937 generator(3);
  for_each_unary([&](UnaryKernel kernel, UnaryFn fn, DType dtype) {
    for (std::int64_t n = 0; n < 40; ++n) {
      const Sample x = Sample::random(dtype, n, generator);
      Sample y(result_of(fn, dtype), n + 2);
      std::memset(y.data(), 0x5a, static_cast<std::size_t>(n + 2) * y.size());
      const Sample before = y;
      kernel(x.data(), static_cast<char*>(y.data()) + y.size(), n);
      CHECK(y.same_bits(0, before, 0) && y.same_bits(n + 1, before, n + 1), name_of(fn));
    }
  });
}

template <class T>
T apply(const KernelTable& table, BinaryFn fn, T a, T b) {
  T y;
  table.binary(fn, kDTypeOf<T>)(&a, &b, &y, 1, 1, 1);
  return y;
}

TEST("integers divide towards minus infinity, and by 0 to 0") {
  for_each_variant([](const KernelTable& table) {
    for (int a = -7; a <= 7; ++a) {
      for (int b = -3; b <= 3; ++b) {
        const auto quotient = static_cast<int>(std::floor(b == 0 ? 0.0 : double(a) / b));
        CHECK_EQ(apply<std::int32_t>(table, BinaryFn::k_floor_div, a, b), quotient);
        CHECK_EQ(apply<std::int64_t>(table, BinaryFn::k_mod, a, b), b == 0 ? 0 : a - quotient * b);
      }
    }
    constexpr auto kMin = std::numeric_limits<std::int32_t>::min();
    CHECK_EQ(apply<std::int32_t>(table, BinaryFn::k_floor_div, kMin, -1), kMin);
    CHECK_EQ(apply<std::int32_t>(table, BinaryFn::k_mod, kMin, -1), 0);
    CHECK_EQ(apply<std::uint8_t>(table, BinaryFn::k_floor_div, 200, 0), 0);
    CHECK_EQ(apply<std::int64_t>(table, BinaryFn::k_pow, -3, 5), -243);
    CHECK_EQ(apply<std::int32_t>(table, BinaryFn::k_pow, -1, -3), -1);
    CHECK_EQ(apply<std::int32_t>(table, BinaryFn::k_pow, 2, -1), 0);
    CHECK_EQ(apply<std::int32_t>(table, BinaryFn::k_pow, 0, 0), 1);
  });
}

TEST("maximum and minimum pass NaN on from either side, relu keeps NaN") {
  for_each_variant([](const KernelTable& table) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const BinaryFn fn : {BinaryFn::k_maximum, BinaryFn::k_minimum}) {
      CHECK(std::isnan(apply(table, fn, nan, 1.0f)) && std::isnan(apply(table, fn, 1.0f, nan)));
    }
    const float x[] = {nan, -2, 3};
    float y[3];
    table.unary(UnaryFn::k_relu, DType::kFloat32)(x, y, 3);
    CHECK(std::isnan(y[0]) && y[1] == 0 && y[2] == 3);
  });
}

TEST("mod has the sign of its divisor and div_no_nan gives 0 for a divisor 0") {
  for_each_variant([](const KernelTable& table) {
    CHECK_EQ(apply(table, BinaryFn::k_mod, -7.0, 3.0), 2.0);
    CHECK_EQ(apply(table, BinaryFn::k_mod, 7.0f, -3.0f), -2.0f);
    CHECK_EQ(apply(table, BinaryFn::k_floor_div, -7.0, 2.0), -4.0);
    CHECK_EQ(apply(table, BinaryFn::k_div_no_nan, 5.0, 0.0), 0.0);
    CHECK_EQ(apply(table, BinaryFn::k_div_no_nan, 5.0, 2.0), 2.5);
  });
}

TEST("select takes each element from the side its condition names, at any steps") {
  std::mt19937 generator(4);
  for_each_variant([&](const KernelTable& table) {
    for (const DType dtype : kAllDTypes) {
      for (int steps = 0; steps < 8; ++steps) {
        for (const std::int64_t n : {1, 3, 8, 17, 64, 100}) {
          const Sample c = Sample::random(DType::kBool, n, generator);
          const Sample a = Sample::random(dtype, n, generator);
          const Sample b = Sample::random(dtype, n, generator);
          Sample y(dtype, n);
          const int c_step = steps & 1, a_step = steps >> 1 & 1, b_step = steps >> 2;
          table.select(dtype)(c.data(), a.data(), b.data(), y.data(), n, c_step, a_step, b_step);
          for (std::int64_t i = 0; i < n; ++i) {
            const bool first = *c.at(i * c_step) != 0;
            CHECK(first ? y.same_bits(i, a, i * a_step) : y.same_bits(i, b, i * b_step));
          }
        }
      }
    }
  });
}

TEST("casts from floats to integers saturate, and NaN becomes 0") {
  for_each_variant([](const KernelTable& table) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double x[] = {1e300,        -1e300, kInfinity, -kInfinity,
                        std::nan(""), -1.9,   255.5,     2147483647};
    std::int32_t i[8];
    std::uint8_t u[8];
    std::int64_t l[8];
    table.cast(DType::kFloat64, DType::kInt32)(x, i, 8);
    table.cast(DType::kFloat64, DType::kUInt8)(x, u, 8);
    table.cast(DType::kFloat64, DType::kInt64)(x, l, 8);
    constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
    constexpr auto kMin = std::numeric_limits<std::int32_t>::min();
    const std::int32_t expected[] = {kMax, kMin, kMax, kMin, 0, -1, 255, kMax};
    const int bytes[] = {255, 0, 255, 0, 0, 0, 255, 255};
    for (int k = 0; k < 8; ++k) {
      CHECK_EQ(i[k], expected[k]);
      CHECK_EQ(int{u[k]}, bytes[k]);
    }
    CHECK_EQ(l[0], std::numeric_limits<std::int64_t>::max());
    CHECK_EQ(l[1], std::numeric_limits<std::int64_t>::min());
  });
}

TEST("a cast has the same bits at any count, and every pair of dtypes has one") {
  std::mt19937 generator(5);
  for_each_variant([&](const KernelTable& table) {
    for (const DType from : kAllDTypes) {
      for (const DType to : kAllDTypes) {
        const CastKernel kernel = table.cast(from, to);
        const Sample x = Sample::random(from, 100, generator);
        Sample whole(to, 100);
        kernel(x.data(), whole.data(), 100);
        for (std::int64_t i = 0; i < 100; ++i) {
          Sample one(to, 1);
          kernel(x.at(i), one.data(), 1);
          CHECK(one.same_bits(0, whole, i), name_of(from), " to ", name_of(to));
        }
      }
    }
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
