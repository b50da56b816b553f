// Variants with fused multiply-add give the same bits: every function of the table, bit by bit.
//
// A variant without it (x86-64-v2, generic) rounds products once more, and everything that is made
// of fma(); what has none must agree there.
#include <cmath>
#include <functional>
#include <string>

#include "kernels/variants.h"

namespace samegrad {
namespace {

using Run = std::function<void(const KernelTable& table, void* y)>;

std::vector<const KernelTable*> fused_variants() {
  std::vector<const KernelTable*> tables;
  for (const std::string& name : tested_variants()) {
    if (load_kernels(name).fused) tables.push_back(&load_kernels(name));
  }
  return tables;
}

// NaN is NaN, whatever its payload: which of two NaNs an operation passes on is the compiler's.
bool same_values(DType dtype, const void* a, const void* b, std::int64_t n) {
  if (std::memcmp(a, b, static_cast<std::size_t>(n) * size_of(dtype)) == 0) return true;
  const auto same = [&]<class T>(T) {
    const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    for (std::int64_t i = 0; i < n; ++i) {
      if (std::memcmp(x + i, y + i, sizeof(T)) != 0 && (x[i] == x[i] || y[i] == y[i])) return false;
    }
    return true;
  };
  return is_floating(dtype) &&
         visit<kFloats>("same_values", dtype, [&]<class T>() { return same(T()); });
}

// The n results of `run` are those of the first variant on all others.
void check_variants(const std::string& what, DType dtype, std::int64_t n, const Run& run) {
  Sample expected(dtype, n), y(dtype, n);
  const KernelTable* first = nullptr;
  for (const KernelTable* table : fused_variants()) {
    std::memset(y.data(), 0, static_cast<std::size_t>(n) * y.size());
    run(*table, first ? y.data() : expected.data());
    if (first) {
      CHECK(same_values(dtype, y.data(), expected.data(), n), what, " ", name_of(dtype), ": ",
            table->isa, " is not ", first->isa);
    } else {
      first = table;
    }
  }
}

// Numbers of every size: denormals, both ends of the range, and what the functions bend at.
Sample wide(DType dtype, std::int64_t n, std::mt19937& generator) {
  Sample s = Sample::random(dtype, n, generator);
  if (!is_floating(dtype)) return s;
  const double most = dtype == DType::kFloat32 ? 140 : 1060;
  std::uniform_real_distribution<double> exponent(-most, most), unit(-1, 1), trig(-3e5, 3e5);
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % 4 == 1) s.set(i, unit(generator) * std::exp2(exponent(generator)));
    if (i % 8 == 2) s.set(i, trig(generator));
    if (i % 8 == 6) s.set(i, unit(generator));
  }
  return s;
}

constexpr std::int64_t kCounts[] = {0, 1, 3, 8, 16, 17, 31, 64, 100, 1000, 20011};

template <class Fn, class F>
void for_each_fn(F f) {
  for (int k = 0; k < static_cast<int>(Fn::kCount); ++k) {
    for (const DType dtype : kAllDTypes) f(static_cast<Fn>(k), dtype);
  }
}

DType result_of(const std::string& name, DType dtype) {
  const bool truth = name.starts_with("is_") || name == "equal" || name == "not_equal" ||
                     name.starts_with("less") || name.starts_with("greater");
  return truth ? DType::kBool : dtype;
}

TEST("elementwise functions are the same in all variants with fused multiply-add") {
  std::mt19937 generator(21);
  int functions = 0;
  for_each_fn<UnaryFn>([&](UnaryFn fn, DType dtype) {
    if (kernels().unary.find(fn, dtype) == nullptr) return;
    ++functions;
    for (const std::int64_t n : kCounts) {
      const Sample x = wide(dtype, n, generator);
      check_variants(name_of(fn), result_of(name_of(fn), dtype), n,
                     [&](const KernelTable& t, void* y) { t.unary(fn, dtype)(x.data(), y, n); });
    }
  });
  for_each_fn<BinaryFn>([&](BinaryFn fn, DType dtype) {
    if (kernels().binary.find(fn, dtype) == nullptr) return;
    ++functions;
    for (const std::int64_t n : kCounts) {
      const Sample a = wide(dtype, n + 1, generator), b = wide(dtype, n + 1, generator);
      for (int steps = 0; steps < 4; ++steps) {
        check_variants(name_of(fn), result_of(name_of(fn), dtype), n,
                       [&](const KernelTable& t, void* y) {
                         t.binary(fn, dtype)(a.data(), b.data(), y, n, steps & 1, steps >> 1);
                       });
      }
    }
  });
  CHECK(functions > 150, functions);
}

TEST("select and casts are the same in all variants") {
  std::mt19937 generator(22);
  for (const DType from : kAllDTypes) {
    for (const std::int64_t n : kCounts) {
      const Sample x = wide(from, n, generator), b = wide(from, n, generator);
      const Sample c = Sample::random(DType::kBool, n, generator);
      check_variants("select", from, n, [&](const KernelTable& t, void* y) {
        t.select(from)(c.data(), x.data(), b.data(), y, n, 1, 1, 1);
      });
      for (const DType to : kAllDTypes) {
        check_variants("cast", to, n,
                       [&](const KernelTable& t, void* y) { t.cast(from, to)(x.data(), y, n); });
      }
    }
  }
}

TEST("reductions are the same in all variants with fused multiply-add") {
  std::mt19937 generator(23);
  for (const ReduceFn fn : {ReduceFn::kSum, ReduceFn::kProd, ReduceFn::kMax, ReduceFn::kMin,
                            ReduceFn::kAny, ReduceFn::kAll}) {
    for (const DType dtype : kAllDTypes) {
      if (kernels().row_reduce.find(fn, dtype) == nullptr) continue;
      for (const std::int64_t n : {0, 1, 7, 15, 16, 17, 33, 100, 1024, 1500, 70001}) {
        const Sample x = wide(dtype, 3 * n, generator);
        check_variants("row_reduce", dtype, 3, [&](const KernelTable& t, void* y) {
          t.row_reduce(fn, dtype)(x.data(), y, 3, n);
        });
        const std::int64_t rows = n < 200 ? 300 : 3, columns = n;
        const Sample z = wide(dtype, rows * columns, generator);
        check_variants("column_reduce", dtype, columns, [&](const KernelTable& t, void* y) {
          t.column_reduce(fn, dtype)(z.data(), y, rows - 1, columns, columns, false);
          t.column_reduce(fn, dtype)(z.at(columns), y, rows - 1, columns, columns, true);
          t.column_fold(fn, dtype)(z.data(), y, rows - 1, columns);
        });
        if (n == 0) continue;
        check_variants("arg_max", DType::kInt64, 3, [&](const KernelTable& t, void* y) {
          t.arg_max(dtype)(x.data(), static_cast<std::int64_t*>(y), 3, n);
        });
        check_variants("arg_min", DType::kInt64, 3, [&](const KernelTable& t, void* y) {
          t.arg_min(dtype)(x.data(), static_cast<std::int64_t*>(y), 3, n);
        });
      }
    }
  }
}

TEST("products are the same in all variants with fused multiply-add") {
  std::mt19937 generator(24);
  struct Sizes {
    std::int64_t m, k, n;
  };
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    for (const Sizes s : {Sizes{1, 1, 1}, Sizes{3, 17, 5}, Sizes{8, 64, 32}, Sizes{13, 400, 70},
                          Sizes{100, 385, 33}, Sizes{5, 9001, 19}, Sizes{2, 0, 3}}) {
      const Sample a = wide(dtype, s.m * s.k, generator), b = wide(dtype, s.k * s.n, generator);
      const Sample bias = wide(dtype, s.n, generator);
      check_variants("matmul", dtype, s.m * s.n, [&](const KernelTable& t, void* y) {
        const ProductKernels& p = t.product(dtype);
        std::vector<std::byte> form(p.packed_bytes(s.k, s.n));
        p.pack(b.data(), s.k, s.n, s.n, false, form.data());
        const Epilogue epilogue{bias.data(), Activation::kRelu};
        p.matmul(a.data(), s.m, s.k, s.k, form.data(), s.n, y, s.n, &epilogue);
      });
      check_variants("matmul_transposed", dtype, s.m * s.n, [&](const KernelTable& t, void* y) {
        t.product(dtype).matmul_transposed(a.data(), s.m, b.data(), s.n, s.k, s.m, s.n, y, s.n,
                                           false, nullptr);
      });
    }
  }
}

// In, out, window, strides, padding, dilations, groups, depth; two have contractions longer than a
// chain.
const WindowGeometry kGeometries[] = {
    {28, 28, 1, 26, 26, 32, 3, 3, 1, 1, 0, 0}, {9, 11, 7, 5, 6, 19, 3, 3, 2, 2, 1, 1},
    {6, 6, 20, 6, 6, 33, 1, 1, 1, 1, 0, 0},    {7, 7, 3, 7, 7, 5, 5, 5, 1, 1, 2, 2},
    {8, 8, 16, 4, 4, 16, 2, 2, 2, 2, 0, 0},    {70, 66, 130, 68, 64, 6, 3, 11, 1, 1, 0, 5}};
const WindowGeometry kGeneral[] = {{9, 11, 7, 5, 5, 19, 3, 2, 2, 2, 2, 1, 2, 3},
                                   {9, 11, 12, 9, 11, 12, 3, 3, 1, 1, 1, 1, 1, 1, 12},
                                   {9, 11, 19, 9, 11, 57, 3, 3, 1, 1, 2, 2, 2, 2, 19},
                                   {9, 11, 12, 5, 6, 20, 3, 3, 2, 2, 1, 1, 1, 1, 4},
                                   {66, 70, 33, 66, 70, 33, 3, 3, 1, 1, 1, 1, 1, 1, 33},
                                   {6, 5, 7, 6, 5, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 7, 4, 3, 2, 2, 2},
                                   {6, 5, 8, 6, 5, 8, 3, 3, 1, 1, 1, 1, 1, 1, 8, 7, 7, 3, 1, 1, 1}};

void check_convolutions(DType dtype, const WindowGeometry& g, std::mt19937& generator) {
  const std::int64_t weights = g.patch_size() * g.out_channels;
  const Sample x = wide(dtype, g.in_size(), generator);
  const Sample dy = wide(dtype, g.out_size(), generator);
  const Sample filter = wide(dtype, weights, generator);
  check_variants("conv2d", dtype, g.out_size(), [&](const KernelTable& t, void* y) {
    const ProductKernels& p = t.product(dtype);
    std::vector<std::byte> form(p.conv2d_packed_bytes(g)), scratch(p.conv2d_scratch_bytes(g));
    p.conv2d_pack(g, filter.data(), 0, g.group_out(), form.data());
    p.conv2d(g, x.data(), form.data(), y, nullptr, scratch.data());
  });
  check_variants("conv2d_input_grad", dtype, g.in_size(), [&](const KernelTable& t, void* y) {
    const ProductKernels& p = t.product(dtype);
    std::vector<std::byte> form(p.conv2d_input_grad_packed_bytes(g));
    std::vector<std::byte> scratch(p.conv2d_input_grad_scratch_bytes(g));
    p.conv2d_input_grad_pack(g, filter.data(), 0, g.group_in(), form.data());
    p.conv2d_input_grad(g, dy.data(), form.data(), y, scratch.data());
  });
  check_variants("conv2d_filter_grad", dtype, weights, [&](const KernelTable& t, void* y) {
    const ProductKernels& p = t.product(dtype);
    std::vector<std::byte> scratch(p.conv2d_filter_grad_scratch_bytes(g, whole_filter(g)));
    p.conv2d_filter_grad(g, x.data(), dy.data(), whole_filter(g), y, false, scratch.data());
    p.conv2d_filter_grad(g, x.data(), dy.data(), whole_filter(g), y, true, scratch.data());
  });
}

TEST("convolutions are the same in all variants with fused multiply-add") {
  std::mt19937 generator(25);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const WindowGeometry& g : kGeometries) check_convolutions(dtype, g, generator);
    for (const WindowGeometry& g : kGeneral) check_convolutions(dtype, g, generator);
  }
}

TEST("scans are the same in all variants") {
  std::mt19937 generator(28);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt8}) {
    for (const std::int64_t n : {1, 127, 128, 129, 300, 20000}) {
      for (const std::int64_t width : {1, 3, 17}) {
        const std::int64_t size = 2 * n * width;
        const Sample a = wide(dtype, size, generator), b = Sample::random(dtype, size, generator);
        Sample scratch(dtype, kScanRows * width);
        const bool exclusive = n % 2 == 0, reverse = width == 3;
        const ScanLines lines{2, n, width, width, exclusive, reverse};
        for (const ScanFn fn : {ScanFn::kSum, ScanFn::kProd}) {
          check_variants("scan", dtype, size, [&](const KernelTable& t, void* y) {
            t.scan(fn, dtype)(lines, b.data(), y, scratch.data());
          });
        }
        check_variants("affine_scan", dtype, size, [&](const KernelTable& t, void* y) {
          t.affine_scan(dtype)(lines, a.data(), b.data(), y);
        });
      }
    }
  }
}

TEST("pooling is the same in all variants") {
  std::mt19937 generator(26);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (WindowGeometry g : kGeometries) {
      g.out_channels = g.in_channels;
      const Sample x = wide(dtype, g.in_size(), generator);
      const Sample dy = wide(dtype, g.out_size(), generator);
      const auto size = static_cast<std::size_t>(g.out_size());
      check_variants("max_pool", dtype, g.out_size(), [&](const KernelTable& t, void* y) {
        std::vector<std::uint8_t> index(size);
        t.pool(dtype).max_pool(g, x.data(), y, index.data());
      });
      check_variants(
          "max_pool's places", DType::kUInt8, g.out_size(), [&](const KernelTable& t, void* y) {
            Sample best(dtype, g.out_size());
            t.pool(dtype).max_pool(g, x.data(), best.data(), static_cast<std::uint8_t*>(y));
          });
      check_variants("max_pool_grad", dtype, g.in_size(), [&](const KernelTable& t, void* y) {
        std::vector<std::uint8_t> index(size);
        Sample best(dtype, g.out_size());
        t.pool(dtype).max_pool(g, x.data(), best.data(), index.data());
        t.pool(dtype).max_pool_grad(g, dy.data(), index.data(), y);
      });
      check_variants("avg_pool", dtype, g.out_size(), [&](const KernelTable& t, void* y) {
        t.pool(dtype).avg_pool(g, x.data(), y);
      });
      check_variants("avg_pool_grad", dtype, g.in_size(), [&](const KernelTable& t, void* y) {
        t.pool(dtype).avg_pool_grad(g, dy.data(), y);
      });
    }
  }
}

TEST("softmax and cross-entropy are the same in all variants with fused multiply-add") {
  std::mt19937 generator(27);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const std::int64_t n : {1, 2, 10, 16, 33, 128, 129, 1024, 1025, 9000}) {
      const std::int64_t rows = 4;
      const Sample x =
          n % 2 ? wide(dtype, rows * n, generator) : Sample::random(dtype, rows * n, generator);
      const std::int64_t labels[] = {0, n - 1, n / 2, 0};
      check_variants("softmax", dtype, rows * n, [&](const KernelTable& t, void* y) {
        t.softmax(dtype).softmax(x.data(), y, rows, n);
      });
      check_variants("log_softmax", dtype, rows * n, [&](const KernelTable& t, void* y) {
        t.softmax(dtype).log_softmax(x.data(), y, rows, n);
      });
      check_variants("cross_entropy", dtype, rows, [&](const KernelTable& t, void* y) {
        Sample probabilities(dtype, rows * n);
        t.softmax(dtype).sparse_cross_entropy(x.data(), labels, y, probabilities.data(), rows, n);
      });
    }
  }
}

TEST("random numbers are the same in all variants with fused multiply-add") {
  const RandomKey key{123, 45};
  for (const std::int64_t n : {1, 5, 16, 17, 100, 3001}) {
    const std::int64_t rows = 7;
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      check_variants("uniform", dtype, rows * n, [&](const KernelTable& t, void* y) {
        t.random(dtype).uniform(key, 3, rows, n, y);
      });
      check_variants("normal", dtype, rows * n, [&](const KernelTable& t, void* y) {
        t.random(dtype).normal(key, 3, rows, n, y);
      });
      check_variants("truncated_normal", dtype, rows * n, [&](const KernelTable& t, void* y) {
        t.random(dtype).truncated_normal(key, 3, rows, n, y);
      });
    }
    for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kUInt32, DType::kUInt64}) {
      check_variants("random_integers", dtype, rows * n, [&](const KernelTable& t, void* y) {
        t.random_integers(dtype)(key, 3, rows, n, 17, 1000003, y);
      });
    }
  }
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
