// Hashes of the results of all functions of a kernel library, a line each, to compare processors.
//
// Usage: hash_kernels LIBRARY. Inputs are made of integers, so that they are equal everywhere, and
// all NaN are hashed as one: which of two NaN an operation returns, and its sign, is the
// processor's.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "base/hasher.h"
#include "base/reduction_order.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"

namespace samegrad {
namespace {

enum class TapRange { kWide, kUsual };  // random bits with special values; numbers around 0

// Memory of n elements; 64 bytes aligned, as scratch memory is.
struct Memory {
  DType dtype;
  std::int64_t count;
  std::vector<std::byte> store;

  Memory(DType type, std::int64_t n)
      : dtype(type), count(n), store(static_cast<std::size_t>(n) * size_of(type) + 64) {}
  explicit Memory(std::size_t bytes) : Memory(DType::kUInt8, static_cast<std::int64_t>(bytes)) {}

  void* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(store.data());
    return store.data() + (64 - address % 64) % 64;
  }
  void* at(std::int64_t i) {
    return static_cast<std::byte*>(data()) + static_cast<std::size_t>(i) * size_of(dtype);
  }
};

// f.operator()<T>() with the type of the elements.
template <class F>
void with_type(DType dtype, F f) {
  visit_or(dtype, f, [] {});
}

// SplitMix64: a call and its inputs are a statement each, in one order for all compilers.
std::uint64_t next_word() {
  static std::uint64_t state = 0;
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// An element from random bits. Integers are not the smallest one, which has no quotient by -1.
template <class T>
T element(std::uint64_t bits, TapRange range) {
  if constexpr (std::is_same_v<T, bool>) {
    return (bits & 1) != 0;
  } else if constexpr (kIsOneOf<T, kFloats>) {
    constexpr double kSpecial[] = {0.0,
                                   -0.0,
                                   1,
                                   -1,
                                   1e30,
                                   -1e30,
                                   1e-310,
                                   -1e-41,
                                   88.8,
                                   -700,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity()};
    if (range == TapRange::kUsual) {
      return static_cast<T>(static_cast<double>(static_cast<std::int32_t>(bits >> 40)) / 0x1p21 -
                            4);
    }
    if (bits % 16 == 3) return static_cast<T>(kSpecial[(bits >> 8) % std::size(kSpecial)]);
    const auto raw = static_cast<BitsOf<T>>(bits >> (64 - 8 * sizeof(T)));
    return std::bit_cast<T>(raw);
  } else if (range == TapRange::kUsual) {
    return static_cast<T>(bits >> 60);
  } else {
    return static_cast<T>(static_cast<T>(bits >> 1) / 2);
  }
}

Memory numbers(DType dtype, std::int64_t n, TapRange range) {
  Memory made(dtype, n);
  with_type(dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < n; ++i) {
      const T value = element<T>(next_word(), range);
      std::memcpy(made.at(i), &value, sizeof value);
    }
  });
  return made;
}

void hash_into(Hasher& hasher, Memory& y, std::int64_t n) {
  with_type(y.dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < n; ++i) {
      T value;
      std::memcpy(&value, y.at(i), sizeof value);
      if constexpr (kIsOneOf<T, kFloats>) {
        const auto wide = static_cast<double>(static_cast<typename DTypeOf<T>::SumType>(value));
        if (std::isnan(wide)) value = static_cast<T>(std::numeric_limits<double>::quiet_NaN());
      }
      hasher.bytes(&value, sizeof value);
    }
  });
}

const char* name_of(TapRange range) {
  return range == TapRange::kWide ? "wide" : "usual";
}

// One line: the hash of results that are added one after the other.
class Line {
 public:
  template <class... Parts>
  explicit Line(const Parts&... parts) {
    ((label_ += std::string(label_.empty() ? "" : " ") + parts), ...);
  }
  void add(Memory& y) { hash_into(hasher_, y, y.count); }
  ~Line() { std::printf("%s %016llx\n", label_.c_str(), (unsigned long long)hasher_.state()); }

 private:
  std::string label_;
  Hasher hasher_;
};

constexpr TapRange kRanges[] = {TapRange::kWide, TapRange::kUsual};
constexpr std::int64_t kCounts[] = {1, 2, 3, 5, 7, 4099};
constexpr DType kFloatTypes[] = {DType::kFloat32, DType::kFloat64};

template <class F>
void for_each_dtype(F f) {
  for (const DTypeEntry& row : kDTypes) {
    for (const TapRange range : kRanges) f(row.dtype, row.name, range);
  }
}

struct Function {
  const char* name;
  bool truth;  // the result is a bool
};
constexpr bool kSame = false, kBoolResult = true;
constexpr Function kUnary[] = {
#define SAMEGRAD_UNARY(name, doc, dtypes, result, ...) {#name, result},
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY
};
constexpr Function kBinary[] = {
#define SAMEGRAD_BINARY(name, doc, dtypes, result, ...) {#name, result},
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
};

// Divisors are not 0, and exponents of integers are not negative.
void make_divisors(Memory& b) {
  with_type(b.dtype, [&]<class T>() {
    if constexpr (kIsOneOf<T, kIntegers>) {
      for (std::int64_t i = 0; i < b.count; ++i) {
        T value;
        std::memcpy(&value, b.at(i), sizeof value);
        value = static_cast<T>((value & 7) + 1);
        std::memcpy(b.at(i), &value, sizeof value);
      }
    }
  });
}

void elementwise(const KernelTable& t) {
  for_each_dtype([&](DType dtype, const char* type, TapRange range) {
    for (std::size_t fn = 0; fn < std::size(kUnary); ++fn) {
      const UnaryKernel run = t.unary.find(static_cast<UnaryFn>(fn), dtype);
      if (run == nullptr) continue;
      Line line(kUnary[fn].name, type, name_of(range));
      for (const std::int64_t n : kCounts) {
        Memory x = numbers(dtype, n, range), y(kUnary[fn].truth ? DType::kBool : dtype, n);
        run(x.data(), y.data(), n);
        line.add(y);
      }
    }
    for (std::size_t fn = 0; fn < std::size(kBinary); ++fn) {
      const BinaryKernel run = t.binary.find(static_cast<BinaryFn>(fn), dtype);
      if (run == nullptr) continue;
      Line line(kBinary[fn].name, type, name_of(range));
      for (const std::int64_t n : kCounts) {
        Memory a = numbers(dtype, n, range), b = numbers(dtype, n, range);
        make_divisors(b);
        Memory y(kBinary[fn].truth ? DType::kBool : dtype, n);
        for (int steps = 1; steps < 4; ++steps) {
          run(a.data(), b.data(), y.data(), n, steps & 1, steps >> 1);
          line.add(y);
        }
      }
    }
  });
}

void moves(const KernelTable& t) {
  for_each_dtype([&](DType from, const char* type, TapRange range) {
    for (const DTypeEntry& to : kDTypes) {
      const CastKernel run = t.cast.find(from, to.dtype);
      if (run == nullptr) continue;
      Line line("cast", type, to.name, name_of(range));
      for (const std::int64_t n : kCounts) {
        Memory x = numbers(from, n, range), y(to.dtype, n);
        run(x.data(), y.data(), n);
        line.add(y);
      }
    }
    if (t.select.find(from) == nullptr) return;
    Line line("select", type, name_of(range));
    for (const std::int64_t n : kCounts) {
      Memory c = numbers(DType::kBool, n, range), a = numbers(from, n, range);
      Memory b = numbers(from, n, range), y(from, n);
      t.select.find(from)(c.data(), a.data(), b.data(), y.data(), n, 1, 1, 1);
      line.add(y);
    }
  });
}

constexpr const char* kReductions[] = {"sum", "prod", "max", "min", "any", "all"};

void reductions(const KernelTable& t) {
  for_each_dtype([&](DType dtype, const char* type, TapRange range) {
    for (int k = 0; k < 6; ++k) {
      const auto fn = static_cast<ReduceFn>(k);
      if (t.row_reduce.find(fn, dtype) == nullptr) continue;
      Line rows("row_reduce", kReductions[k], type, name_of(range));
      Line columns("column_reduce", kReductions[k], type, name_of(range));
      for (const std::int64_t n : {0, 1, 7, 16, 17, 33, 100, 1025, 2500}) {
        Memory x = numbers(dtype, 3 * n, range), y(dtype, 3);
        t.row_reduce.find(fn, dtype)(x.data(), y.data(), 3, n);
        rows.add(y);
        const std::int64_t count = n < 200 ? 150 : 3;
        Memory z = numbers(dtype, count * n, range), w(dtype, n);
        t.column_reduce.find(fn, dtype)(z.data(), w.data(), count - 1, n, n, false);
        t.column_reduce.find(fn, dtype)(z.at(n), w.data(), count - 1, n, n, true);
        t.column_fold.find(fn, dtype)(z.data(), w.data(), count - 1, n);
        columns.add(w);
      }
    }
    if (t.arg_max.find(dtype) == nullptr) return;
    Line line("arg_max, arg_min", type, name_of(range));
    for (const std::int64_t n : {1, 7, 16, 17, 33, 100, 1025}) {
      Memory x = numbers(dtype, 3 * n, range), y(DType::kInt64, 3);
      for (const ArgReduceKernel run : {t.arg_max.find(dtype), t.arg_min.find(dtype)}) {
        run(x.data(), static_cast<std::int64_t*>(y.data()), 3, n);
        line.add(y);
      }
    }
  });
}

void scans(const KernelTable& t) {
  for_each_dtype([&](DType dtype, const char* type, TapRange range) {
    if (t.scan.find(ScanFn::kSum, dtype) == nullptr) return;
    Line line("scans", type, name_of(range));
    for (const std::int64_t n : {1, 127, 129, 1000}) {
      for (const std::int64_t width : {1, 3, 17}) {
        const std::int64_t size = 2 * n * width;
        Memory a = numbers(dtype, size, range), b = numbers(dtype, size, range), y(dtype, size);
        Memory scratch(dtype, kScanRows * width);
        const ScanLines lines{2, n, width, width, n % 2 == 0, width == 3};
        for (const ScanFn fn : {ScanFn::kSum, ScanFn::kProd}) {
          t.scan.find(fn, dtype)(lines, b.data(), y.data(), scratch.data());
          line.add(y);
        }
        if (t.affine_scan.find(dtype) == nullptr) continue;
        t.affine_scan.find(dtype)(lines, a.data(), b.data(), y.data());
        line.add(y);
      }
    }
  });
}

struct Sizes {
  std::int64_t m, k, n;
};
constexpr Sizes kSizes[] = {{1, 1, 1},     {3, 17, 5},    {8, 64, 32}, {13, 400, 70},
                            {40, 385, 33}, {5, 9001, 19}, {2, 0, 3},   {97, 30, 150}};

void matrix_products(const KernelTable& t, DType dtype, const char* type, TapRange range) {
  const ProductKernels& p = *t.product.find(dtype);
  Line line("matmul", type, name_of(range));
  for (const Sizes s : kSizes) {
    Memory a = numbers(dtype, s.m * s.k, range), b = numbers(dtype, s.k * s.n, range);
    Memory bias = numbers(dtype, s.n, range), y(dtype, s.m * s.n);
    const Epilogue epilogue{bias.data(), Activation::kRelu};
    Memory packed(p.packed_bytes(s.k, s.n));
    for (const bool transposed : {false, true}) {
      p.pack(b.data(), s.k, s.n, transposed ? s.k : s.n, transposed, packed.data());
      p.matmul(a.data(), s.m, s.k, s.k, packed.data(), s.n, y.data(), s.n, &epilogue);
      line.add(y);
    }
    p.matmul_transposed(a.data(), s.m, b.data(), s.n, s.k, s.m, s.n, y.data(), s.n, false, nullptr);
    line.add(y);
    if (p.matmul_grouped == nullptr) continue;
    const RowPiece piece{a.data(), y.data(), s.m};
    Memory scratch(p.matmul_grouped_scratch_bytes(s.k, s.n));
    p.matmul_grouped({{&piece, 1}, s.k, s.n, b.data(), false, 0, s.n, nullptr, scratch.data()});
    line.add(y);
  }
}

void tree_products(const KernelTable& t, DType dtype, const char* type, TapRange range) {
  const ProductKernels& p = *t.product.find(dtype);
  if (p.matmul_tree == nullptr) return;
  Line line("matmul_tree", type, name_of(range));
  for (const std::int64_t examples : {1, 4, 5, 37}) {
    for (const Sizes s : {Sizes{1, 1, 1}, Sizes{7, 2, 40}, Sizes{30, 1, 150}}) {
      const std::int64_t rows = examples * s.k;
      Memory a = numbers(dtype, rows * s.m, range), b = numbers(dtype, rows * s.n, range);
      Memory y(dtype, s.m * s.n);
      Memory left(p.tree_packed_bytes(rows, s.m, false)),
          right(p.tree_packed_bytes(rows, s.n, true));
      p.tree_pack(a.data(), s.m, rows, s.m, false, left.data());
      p.tree_pack(b.data(), s.n, rows, s.n, true, right.data());
      Memory scratch(p.matmul_tree_scratch_bytes(examples));
      p.matmul_tree({left.data(), right.data(), rows, 0, examples, s.k, s.m, s.n}, y.data(), s.n,
                    scratch.data());
      line.add(y);
      const TreeShare share{a.data(), b.data(), examples, 1};
      const TreeSum sum{{&share, 1}, s.k, s.m, s.n};
      Memory more(p.matmul_tree_add_scratch_bytes(sum, s.m, s.n));
      p.matmul_tree_add(sum, 0, 0, s.m, s.n, y.data(), s.n, more.data());
      line.add(y);
    }
  }
}

// In, out, window, strides, padding, dilations, groups, depth.
const WindowGeometry kPlain[] = {{28, 28, 1, 26, 26, 32, 3, 3, 1, 1, 0, 0},
                                 {9, 11, 7, 5, 6, 19, 3, 3, 2, 2, 1, 1},
                                 {8, 8, 16, 4, 4, 16, 2, 2, 2, 2, 0, 0},
                                 {70, 66, 2, 68, 64, 6, 3, 11, 1, 1, 0, 5}};
const WindowGeometry kGeneral[] = {{9, 11, 7, 5, 5, 19, 3, 2, 2, 2, 2, 1, 2, 3},
                                   {9, 11, 12, 9, 11, 12, 3, 3, 1, 1, 1, 1, 1, 1, 12},
                                   {9, 11, 19, 9, 11, 57, 3, 3, 1, 1, 2, 2, 2, 2, 19},
                                   {9, 11, 12, 5, 6, 20, 3, 3, 2, 2, 1, 1, 1, 1, 4},
                                   {6, 5, 7, 6, 5, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 7, 4, 3, 2, 2, 2},
                                   {6, 5, 8, 6, 5, 8, 3, 3, 1, 1, 1, 1, 1, 1, 8, 7, 7, 3, 1, 1, 1}};

void convolve(const ProductKernels& p, DType dtype, const WindowGeometry& g, TapRange range,
              Line& line) {
  constexpr std::int64_t kExamples = 5;
  const std::int64_t weights = g.patch_size() * g.out_channels;
  Memory x = numbers(dtype, kExamples * g.in_size(), range);
  Memory dy = numbers(dtype, kExamples * g.out_size(), range);
  Memory filter = numbers(dtype, weights, range);
  Memory y(dtype, g.out_size()), dx(dtype, g.in_size()), dfilter(dtype, weights);
  Memory packed(p.conv2d_packed_bytes(g)), scratch(p.conv2d_scratch_bytes(g));
  p.conv2d_pack(g, filter.data(), 0, g.group_out(), packed.data());
  p.conv2d(g, x.data(), packed.data(), y.data(), nullptr, scratch.data());
  line.add(y);
  Memory turned(p.conv2d_input_grad_packed_bytes(g)), more(p.conv2d_input_grad_scratch_bytes(g));
  p.conv2d_input_grad_pack(g, filter.data(), 0, g.group_in(), turned.data());
  p.conv2d_input_grad(g, dy.data(), turned.data(), dx.data(), more.data());
  line.add(dx);
  const FilterBlock whole = whole_filter(g);
  Memory of_filter(p.conv2d_filter_grad_scratch_bytes(g, whole));
  for (const bool accumulate : {false, true}) {
    p.conv2d_filter_grad(g, x.data(), dy.data(), whole, dfilter.data(), accumulate,
                         of_filter.data());
  }
  line.add(dfilter);
  if (p.conv2d_filter_tree == nullptr) return;
  Memory of_tree(p.conv2d_filter_tree_scratch_bytes(g, kExamples, 1, whole));
  p.conv2d_filter_tree(g, x.data(), dy.data(), kExamples, 1, whole, dfilter.data(), of_tree.data());
  line.add(dfilter);
}

void pool(const PoolKernels& p, DType dtype, WindowGeometry g, TapRange range, Line& line) {
  g.out_channels = g.in_channels;
  Memory x = numbers(dtype, g.in_size(), range), dy = numbers(dtype, g.out_size(), range);
  Memory y(dtype, g.out_size()), dx(dtype, g.in_size()), index(DType::kUInt8, g.out_size());
  p.max_pool(g, x.data(), y.data(), static_cast<std::uint8_t*>(index.data()));
  line.add(y);
  line.add(index);
  p.max_pool_grad(g, dy.data(), static_cast<const std::uint8_t*>(index.data()), dx.data());
  line.add(dx);
  p.avg_pool(g, x.data(), y.data());
  line.add(y);
  p.avg_pool_grad(g, dy.data(), dx.data());
  line.add(dx);
}

void products(const KernelTable& t) {
  for_each_dtype([&](DType dtype, const char* type, TapRange range) {
    if (t.product.find(dtype) == nullptr) return;
    matrix_products(t, dtype, type, range);
    if (!is_floating(dtype)) return;
    tree_products(t, dtype, type, range);
    Line convolutions("convolutions", type, name_of(range));
    Line pools("pools", type, name_of(range));
    for (const WindowGeometry& g : kPlain) {
      convolve(*t.product.find(dtype), dtype, g, range, convolutions);
      pool(*t.pool.find(dtype), dtype, g, range, pools);
    }
    for (const WindowGeometry& g : kGeneral) {
      convolve(*t.product.find(dtype), dtype, g, range, convolutions);
    }
  });
}

void classification(const KernelTable& t) {
  for (const DType dtype : kFloatTypes) {
    for (const TapRange range : kRanges) {
      Line line("softmax", row_of(dtype).name, name_of(range));
      const SoftmaxKernels& s = *t.softmax.find(dtype);
      for (const std::int64_t n : {1, 2, 10, 16, 33, 129, 1025}) {
        Memory x = numbers(dtype, 4 * n, range), y(dtype, 4 * n), loss(dtype, 4);
        const std::int64_t labels[] = {0, n - 1, n / 2, 0};
        s.softmax(x.data(), y.data(), 4, n);
        line.add(y);
        s.log_softmax(x.data(), y.data(), 4, n);
        line.add(y);
        s.sparse_cross_entropy(x.data(), labels, loss.data(), y.data(), 4, n);
        line.add(loss);
        line.add(y);
      }
    }
  }
}

void random_numbers(const KernelTable& t) {
  const RandomKey key{123, 45};
  for (const DType dtype : kFloatTypes) {
    const RandomKernels& r = *t.random.find(dtype);
    for (const auto& [name, run] : {std::pair{"uniform", r.uniform},
                                    {"normal", r.normal},
                                    {"truncated_normal", r.truncated_normal}}) {
      Line line(name, row_of(dtype).name);
      for (const std::int64_t n : {1, 5, 16, 17, 3001}) {
        Memory y(dtype, 7 * n);
        run(key, 3, 7, n, y.data());
        line.add(y);
      }
    }
  }
  for (const DTypeEntry& row : kDTypes) {
    if (t.random_integers.find(row.dtype) == nullptr) continue;
    Line line("random_integers", row.name);
    Memory y(row.dtype, 7 * 1001);
    t.random_integers.find(row.dtype)(key, 3, 7, 1001, 17, 1000003, y.data());
    line.add(y);
  }
}

void hashes(const KernelTable& t) {
  for_each_dtype([&](DType dtype, const char* type, TapRange range) {
    Line line("hash", type, name_of(range));
    for (const std::int64_t n : kCounts) {
      Memory x = numbers(dtype, n, range), y(DType::kUInt64, 1);
      const std::uint64_t hash = t.hash.find(dtype)(x.data(), n, 3 * n);
      std::memcpy(y.data(), &hash, sizeof hash);
      line.add(y);
    }
  });
}

const KernelTable* open(const char* library) {
  void* object = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* found = object == nullptr ? nullptr : dlsym(object, "samegrad_kernel_table");
  if (found == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  return reinterpret_cast<const KernelTable* (*)()>(found)();
}

}  // namespace
}  // namespace samegrad

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
    return 2;
  }
  const samegrad::KernelTable* table = samegrad::open(argv[1]);
  if (table == nullptr) return 1;
  samegrad::elementwise(*table);
  samegrad::moves(*table);
  samegrad::reductions(*table);
  samegrad::scans(*table);
  samegrad::products(*table);
  samegrad::classification(*table);
  samegrad::random_numbers(*table);
  samegrad::hashes(*table);
  return 0;
}
