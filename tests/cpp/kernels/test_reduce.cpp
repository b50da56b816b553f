// Row and column reductions against the order their contract states, bit by bit.
#include <algorithm>
#include <cmath>

#include "kernels/variants.h"

namespace samegrad {
namespace {

constexpr std::int64_t kRows = 5;

// One step of a reduction, NaN going through maximum and minimum, whole numbers wrapping around.
template <class T>
T fold(ReduceFn fn, T a, T b) {
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  switch (fn) {
    case ReduceFn::kSum:
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    case ReduceFn::kProd:
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case ReduceFn::kMax:
      return a >= b || a != a ? a : b;
    default:
      return a <= b || a != a ? a : b;
  }
}
template <class T>
T neutral(ReduceFn fn) {
  using Limits = std::numeric_limits<T>;
  if (fn == ReduceFn::kSum) return T(0);
  if (fn == ReduceFn::kProd) return T(1);
  const T least = Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
  const T most = Limits::has_infinity ? Limits::infinity() : Limits::max();
  return fn == ReduceFn::kMax ? least : most;
}
template <class T>
T by_lanes(ReduceFn fn, const T* x, std::int64_t n) {
  constexpr std::size_t kLanes = 64 / sizeof(T);
  std::vector<T> lane(kLanes, neutral<T>(fn));
  for (std::int64_t i = 0; i < n; ++i) {
    T& l = lane[static_cast<std::size_t>(i) % kLanes];
    l = fold(fn, l, x[i]);
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lane[i] = fold(fn, lane[i], lane[i + half]);
  }
  return lane[0];
}

template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

constexpr ReduceFn kNumberFns[] = {ReduceFn::kSum, ReduceFn::kProd, ReduceFn::kMax, ReduceFn::kMin};

template <class T>
void check_rows(const KernelTable& table, ReduceFn fn, std::int64_t n, std::mt19937& generator) {
  const Sample all = Sample::random(kDTypeOf<T>, kRows * n, generator);
  const Sample x = all.part(0, kRows * n, static_cast<std::int64_t>(generator() % 5));
  T y[kRows];
  table.row_reduce(fn, kDTypeOf<T>)(x.data(), y, kRows, n);
  for (std::int64_t r = 0; r < kRows; ++r) {
    const T expected = by_lanes(fn, x.as<T>() + r * n, n);
    CHECK(same(y[r], expected), table.isa, " ", name_of(kDTypeOf<T>), " n=", n, " row ", r);
  }
}

template <class T>
void check_columns(const KernelTable& table, ReduceFn fn, std::int64_t n, std::mt19937& generator) {
  const ColumnReduceKernel kernel = table.column_reduce(fn, kDTypeOf<T>);
  const Sample all = Sample::random(kDTypeOf<T>, kRows * n, generator);
  const Sample x = all.part(0, kRows * n, static_cast<std::int64_t>(generator() % 5));
  Sample y(kDTypeOf<T>, n), z(kDTypeOf<T>, n);
  kernel(x.data(), y.data(), kRows, n, false);
  kernel(x.data(), z.data(), 2, n, false);
  kernel(x.at(2 * n), z.data(), kRows - 2, n, true);
  for (std::int64_t c = 0; c < n; ++c) {
    T expected = x.as<T>()[c];
    for (std::int64_t r = 1; r < kRows; ++r) expected = fold(fn, expected, x.as<T>()[r * n + c]);
    CHECK(same(y.as<T>()[c], expected), table.isa, " ", name_of(kDTypeOf<T>), " n=", n);
    CHECK(same(z.as<T>()[c], expected), "accumulated, n=", n);
  }
  kernel(x.data(), y.data(), 0, n, true);
  CHECK(n == 0 || same(y.as<T>()[0], z.as<T>()[0]), "no rows leave an accumulation alone");
  kernel(x.data(), y.data(), 0, n, false);
  CHECK(n == 0 || same(y.as<T>()[0], neutral<T>(fn)), "no rows give the neutral element");
}

template <class T>
void check_dtype(const KernelTable& table, std::mt19937& generator) {
  for (const ReduceFn fn : kNumberFns) {
    for (std::int64_t n = 0; n <= 40; ++n) {
      check_rows<T>(table, fn, n, generator);
      check_columns<T>(table, fn, n, generator);
    }
    for (const std::int64_t n : {63, 64, 65, 127, 130, 257, 1000}) {
      check_rows<T>(table, fn, n, generator);
      check_columns<T>(table, fn, n, generator);
    }
  }
}

TEST("rows are reduced by lanes of 64 bytes and columns in order, the same in every variant") {
  std::mt19937 generator(11);
  for_each_variant([&](const KernelTable& table) {
    check_dtype<float>(table, generator);
    check_dtype<double>(table, generator);
    check_dtype<std::int32_t>(table, generator);
    check_dtype<std::int64_t>(table, generator);
    check_dtype<std::uint8_t>(table, generator);
  });
}

TEST("any and all are defined for truth values and for nothing else") {
  for_each_variant([](const KernelTable& table) {
    const bool x[] = {false, true, true, true, false, false};
    bool y[2], columns[3];
    table.row_reduce(ReduceFn::kAny, DType::kBool)(x, y, 2, 3);
    CHECK(y[0] && y[1]);
    table.row_reduce(ReduceFn::kAll, DType::kBool)(x, y, 2, 3);
    CHECK(!y[0] && !y[1]);
    table.column_reduce(ReduceFn::kAny, DType::kBool)(x, columns, 2, 3, false);
    CHECK(columns[0] && columns[1] && columns[2]);
    table.column_reduce(ReduceFn::kAll, DType::kBool)(x, columns, 2, 3, false);
    CHECK(!columns[0] && !columns[1] && !columns[2]);
    CHECK(table.row_reduce(ReduceFn::kAny, DType::kFloat32) == nullptr);
    CHECK(table.row_reduce(ReduceFn::kSum, DType::kBool) == nullptr);
  });
}

// The first element nothing beats, NaN beating all.
template <class T>
std::int64_t first_best(const T* x, std::int64_t n, bool largest) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) return i;
  }
  return (largest ? std::max_element(x, x + n) : std::min_element(x, x + n)) - x;
}

template <class T>
void check_arg(const KernelTable& table, std::mt19937& generator) {
  for (std::int64_t n = 1; n <= 70; ++n) {
    const Sample x = Sample::random(kDTypeOf<T>, kRows * n, generator);
    std::int64_t most[kRows], least[kRows];
    table.arg_max(kDTypeOf<T>)(x.data(), most, kRows, n);
    table.arg_min(kDTypeOf<T>)(x.data(), least, kRows, n);
    for (std::int64_t r = 0; r < kRows; ++r) {
      CHECK_EQ(most[r], first_best(x.as<T>() + r * n, n, true));
      CHECK_EQ(least[r], first_best(x.as<T>() + r * n, n, false));
    }
  }
}

TEST("arg_max and arg_min give the first of equals, and the first NaN") {
  std::mt19937 generator(12);
  for_each_variant([&](const KernelTable& table) {
    check_arg<float>(table, generator);
    check_arg<double>(table, generator);
    check_arg<std::int32_t>(table, generator);
    check_arg<std::int64_t>(table, generator);
    check_arg<std::uint8_t>(table, generator);
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
