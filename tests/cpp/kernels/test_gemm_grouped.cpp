// The product of many rows and a large right operand: the bits of matmul, whatever is divided how.
#include "kernels/elementwise_fn.h"
#include "kernels/products.h"

namespace samegrad {
namespace {

struct Sizes {
  std::int64_t m, k, n;
};

// Rows of odd numbers in pieces that are anywhere; some pieces are empty.
std::vector<std::int64_t> any_division(std::int64_t rows) {
  std::vector<std::int64_t> pieces;
  const std::int64_t most = any_of(1, 1 + rows);
  while (rows > 0) {
    pieces.push_back(any_of(0, std::min(most, rows)));
    rows -= pieces.back();
  }
  return pieces;
}

// Edges of ranges of columns, which begin where panels of every variant do.
std::vector<std::int64_t> any_edges(std::int64_t n) {
  std::vector<std::int64_t> edges = {0};
  for (std::int64_t column = kWidestPanel; column < n; column += kWidestPanel) {
    if (any_of(0, 1) == 1) edges.push_back(column);
  }
  edges.push_back(n);
  return edges;
}

template <class T>
struct Operands {
  Sizes sizes;
  bool transposed;
  Block<T> a, b, bias;

  explicit Operands(Sizes s, bool is_transposed = any_of(0, 1) == 1)
      : sizes(s), transposed(is_transposed), a(s.m * s.k), b(s.k * s.n), bias(s.n) {}

  Block<T> by_matmul(const ProductKernels& p, const Epilogue* epilogue) const {
    const auto [m, k, n] = sizes;
    Block<T> y(m * n);
    Scratch form = packed(p, b.data(), k, n, transposed ? k : n, transposed);
    p.matmul(a.data(), m, k, k, form.data(), n, y.data(), n, epilogue);
    return y;
  }
  // Each piece is a block of its own, and the ranges of columns come last to first.
  Block<T> by_pieces(const ProductKernels& p, const Epilogue* epilogue,
                     const std::vector<std::int64_t>& division,
                     const std::vector<std::int64_t>& edges) const {
    const auto [m, k, n] = sizes;
    std::vector<Block<T>> as, ys;
    std::vector<RowPiece> pieces;
    std::int64_t row = 0;
    for (const std::int64_t rows : division) {
      as.emplace_back(rows * k);
      ys.emplace_back(rows * n);
      std::copy_n(a.data() + row * k, rows * k, as.back().data());
      pieces.push_back({as.back().data(), ys.back().data(), rows});
      row += rows;
    }
    for (std::size_t i = edges.size() - 1; i > 0; --i) {
      const std::int64_t columns = edges[i] - edges[i - 1];
      Scratch scratch(p.matmul_grouped_scratch_bytes(k, columns) + 64);
      const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
      p.matmul_grouped({pieces, k, n, b.data(), transposed, edges[i - 1], columns, epilogue,
                        static_cast<std::byte*>(scratch.data()) + (64 - address % 64) % 64,
                        i % 2 == 0});
    }
    Block<T> y(m * n);
    T* to = y.data();
    for (const Block<T>& part : ys) to = std::copy_n(part.data(), part.size(), to);
    return y;
  }
};

template <class T>
void check(const KernelTable& table, const ProductKernels& p, const Operands<T>& o) {
  const auto [m, k, n] = o.sizes;
  const Epilogue epilogue{any_of(0, 1) == 1 ? o.bias.data() : nullptr,
                          any_of(0, 1) == 1 ? Activation::kRelu : Activation::kNone};
  const Epilogue* with = any_of(0, 3) == 0 ? nullptr : &epilogue;
  const Block<T> y = o.by_pieces(p, with, any_division(m), any_edges(n));
  CHECK(same_bits(y, o.by_matmul(p, with)), table.isa, " ", sizeof(T), " m ", m, " k ", k, " n ", n,
        " transposed ", o.transposed);
}

TEST("a wide product has the bits of matmul, for any sizes, pieces, columns and epilogue") {
  std::vector<Sizes> sizes;
  for (std::int64_t m = 0; m <= 40; ++m) {
    for (const std::int64_t k : {0, 1, 3, 15, 16, 17, 50}) sizes.push_back({m, k, any_of(1, 40)});
  }
  for (const std::int64_t n : {127, 128, 129, 300, 1030}) {
    for (const std::int64_t m : {1, 7, 8, 96, 97, 200}) sizes.push_back({m, any_of(1, 60), n});
  }
  for (const std::int64_t k : {383, 384, 385, 1000}) {
    for (const std::int64_t m : {1, 39, 97}) sizes.push_back({m, k, any_of(1, 300)});
    sizes.push_back({5, k, 1030});
  }
  for_each_kernel([&](const KernelTable& table, const ProductKernels& p, auto zero) {
    for (const Sizes& s : sizes) check(table, p, Operands<decltype(zero)>(s));
  });
}

TEST("a long contraction of a wide product is cut into chains as that of matmul") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    for (const std::int64_t k : {4096, 4097, 9000, 20481}) {
      check(table, p, Operands<decltype(zero)>({any_of(1, 20), k, any_of(1, 200)}));
    }
    check(table, p, Operands<decltype(zero)>({1100, 4100, 9}));
  });
}

TEST("a wide product treats NaN, infinity and -0 as matmul does") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    for (const bool transposed : {false, true}) {
      Operands<T> o({20, 400, 150}, transposed);
      o.a[3 * 400 + 390] = std::numeric_limits<T>::quiet_NaN();
      o.a[7 * 400 + 1] = std::numeric_limits<T>::infinity();
      o.b[123] = -std::numeric_limits<T>::infinity();
      for (std::int64_t i = 0; i < 400; ++i) o.a[9 * 400 + i] = T(-0.0);
      check(table, p, o);
    }
  });
}

TEST("integer wide products wrap around as matmul does") {
  for_each_variant([](const KernelTable& table) {
    for (const bool transposed : {false, true}) {
      const Sizes s{13, 33, 200};
      check(table, table.product(DType::kInt32), Operands<std::int32_t>(s, transposed));
      check(table, table.product(DType::kInt64), Operands<std::int64_t>(s, transposed));
    }
  });
}

template <class T>
void check_fused_variants(const Operands<T>& o) {
  const Epilogue relu{o.bias.data(), Activation::kRelu};
  std::vector<Block<T>> results;
  for_each_variant([&](const KernelTable& table) {
    if (!Chain(table).fused) return;
    const ProductKernels& p = table.product(sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64);
    results.push_back(o.by_pieces(p, &relu, any_division(o.sizes.m), any_edges(o.sizes.n)));
    CHECK(same_bits(results.front(), results.back()), table.isa, " ", sizeof(T));
  });
}

TEST("wide products are the same in all variants with fused multiply-add") {
  for (const Sizes s : {Sizes{13, 400, 300}, Sizes{100, 385, 33}, Sizes{5, 9001, 150}}) {
    check_fused_variants(Operands<float>(s));
    check_fused_variants(Operands<double>(s));
  }
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
