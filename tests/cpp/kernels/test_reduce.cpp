// Row and column reductions against the order their contract states, bit by bit.
#include <algorithm>
#include <cmath>

#include "base/reduction_order.h"
#include "kernels/variants.h"
#include "reduction_spec.h"

namespace samegrad {
namespace {

constexpr std::int64_t kRows = 5;

// One step of a reduction, NaN going through maximum and minimum, integers wrapping around.
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
T block_by_lanes(ReduceFn fn, const T* x, std::int64_t n) {
  constexpr std::size_t kLanes = std::size_t(kLaneBytes) / sizeof(T);
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
T by_lanes(ReduceFn fn, const T* x, std::int64_t n) {
  if (sizeof(T) == 1) return block_by_lanes(fn, x, n);
  return testing::by_specification(
      0, n, 1024, 1024,
      [&](std::int64_t first, std::int64_t count) { return block_by_lanes(fn, x + first, count); },
      [&](T left, T right) { return fold(fn, left, right); });
}

// Column c of n, in the order of the contract.
template <class T>
T by_blocks(ReduceFn fn, const T* x, std::int64_t rows, std::int64_t n) {
  return testing::by_specification(
      0, rows, 128, 128,
      [&](std::int64_t first, std::int64_t count) {
        T result = x[first * n];
        for (std::int64_t r = 1; r < count; ++r) result = fold(fn, result, x[(first + r) * n]);
        return result;
      },
      [&](T left, T right) { return fold(fn, left, right); });
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
void check_columns(const KernelTable& table, ReduceFn fn, std::int64_t n, std::mt19937& generator,
                   std::int64_t rows = kRows) {
  const ColumnReduceKernel kernel = table.column_reduce(fn, kDTypeOf<T>);
  const Sample all = Sample::random(kDTypeOf<T>, rows * n, generator);
  const Sample x = all.part(0, rows * n, static_cast<std::int64_t>(generator() % 5));
  Sample y(kDTypeOf<T>, n), z(kDTypeOf<T>, n);
  kernel(x.data(), y.data(), rows, n, n, false);
  kernel(x.data(), z.data(), 2, n, n, false);
  kernel(x.at(2 * n), z.data(), rows - 2, n, n, true);
  for (std::int64_t c = 0; c < n; ++c) {
    const T* column = x.as<T>() + c;
    const T first = by_blocks(fn, column, 2, n), rest = by_blocks(fn, column + 2 * n, rows - 2, n);
    CHECK(same(y.as<T>()[c], by_blocks(fn, column, rows, n)), table.isa, " ", name_of(kDTypeOf<T>),
          " n=", n);
    CHECK(same(z.as<T>()[c], fold(fn, first, rest)), "accumulated, n=", n);
  }
  kernel(x.data(), z.data(), 0, n, n, true);
  const T* column = x.as<T>();
  CHECK(n == 0 || same(z.as<T>()[0], fold(fn, by_blocks(fn, column, 2, n),
                                          by_blocks(fn, column + 2 * n, rows - 2, n))),
        "no rows leave an accumulation alone");
  kernel(x.data(), y.data(), 0, n, n, false);
  CHECK(n == 0 || same(y.as<T>()[0], neutral<T>(fn)), "no rows give the neutral element");
}

// A block of rows, in pieces.
template <class T>
void check_folds(const KernelTable& table, ReduceFn fn, std::int64_t n, std::mt19937& generator) {
  const std::int64_t rows = kColumnBlock;
  const Sample x = Sample::random(kDTypeOf<T>, rows * n, generator);
  Sample y(kDTypeOf<T>, n);
  const ColumnFoldKernel fold = table.column_fold(fn, kDTypeOf<T>);
  table.column_reduce(fn, kDTypeOf<T>)(x.data(), y.data(), 1, n, n, false);
  for (std::int64_t at = 1; at < rows;) {
    const std::int64_t some = std::min<std::int64_t>(1 + at % 9, rows - at);
    fold(x.at(at * n), y.data(), some, n);
    at += some;
  }
  for (std::int64_t c = 0; c < n; ++c) {
    CHECK(same(y.as<T>()[c], by_blocks(fn, x.as<T>() + c, rows, n)), table.isa, " n=", n);
  }
}

template <class T>
void check_dtype(const KernelTable& table, std::mt19937& generator) {
  for (const ReduceFn fn : kNumberFns) {
    for (std::int64_t n = 0; n <= 40; ++n) {
      check_rows<T>(table, fn, n, generator);
      check_columns<T>(table, fn, n, generator);
      check_folds<T>(table, fn, n, generator);
    }
    for (const std::int64_t n : {63, 64, 65, 127, 130, 257, 1000}) {
      check_rows<T>(table, fn, n, generator);
      check_columns<T>(table, fn, n, generator);
      check_folds<T>(table, fn, n, generator);
    }
    for (const std::int64_t n : {1024, 1025, 2047, 3072, 5000, 100001}) {
      check_rows<T>(table, fn, n, generator);
    }
    for (const std::int64_t rows : {128, 129, 385, 1000, 4097}) {
      for (const std::int64_t n : {1, 7, 70}) check_columns<T>(table, fn, n, generator, rows);
    }
  }
}

TEST(
    "rows are reduced by lanes and columns in order, in blocks joined by halving, in every "
    "variant") {
  std::mt19937 generator(11);
  for_each_variant([&](const KernelTable& table) {
    check_dtype<float>(table, generator);
    check_dtype<double>(table, generator);
    check_dtype<std::int32_t>(table, generator);
    check_dtype<std::int64_t>(table, generator);
    check_dtype<std::uint8_t>(table, generator);
  });
}

template <class T>
void check_error(const KernelTable& table, double most) {
  constexpr std::int64_t kCount = 3000017;
  const std::vector<T> x(kCount, T(0.1));
  T by_row = 0, by_column = 0;
  table.row_reduce(ReduceFn::kSum, kDTypeOf<T>)(x.data(), &by_row, 1, kCount);
  table.column_reduce(ReduceFn::kSum, kDTypeOf<T>)(x.data(), &by_column, kCount, 1, 1, false);
  const double exact = static_cast<double>(T(0.1)) * kCount;
  for (const double sum : {double(by_row), double(by_column)}) {
    CHECK(std::fabs(sum / exact - 1) <= most, table.isa, " ", sum, " for ", exact);
  }
}

TEST("millions of numbers are summed with a bounded error") {
  for_each_variant([](const KernelTable& table) {
    check_error<float>(table, 1e-6);
    check_error<double>(table, 1e-14);
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
    table.column_reduce(ReduceFn::kAny, DType::kBool)(x, columns, 2, 3, 3, false);
    CHECK(columns[0] && columns[1] && columns[2]);
    table.column_reduce(ReduceFn::kAll, DType::kBool)(x, columns, 2, 3, 3, false);
    CHECK(!columns[0] && !columns[1] && !columns[2]);
    CHECK(table.row_reduce.find(ReduceFn::kAny, DType::kFloat32) == nullptr);
    CHECK(table.row_reduce.find(ReduceFn::kSum, DType::kBool) == nullptr);
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
