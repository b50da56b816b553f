// Products by the tree over examples against leaves, which are chains, and joins of its halves.
#include <limits>

#include "kernels/products.h"

namespace samegrad {
namespace {

struct Sizes {
  std::int64_t examples, rows, m, n;
};

// Operands and results that are in larger matrices.
template <class T>
struct TreeCase {
  Sizes s;
  std::int64_t lda, ldb, ldy;
  Block<T> a, b, y;

  explicit TreeCase(Sizes sizes)
      : s(sizes),
        lda(s.m + any_of(0, 3)),
        ldb(s.n + any_of(0, 3)),
        ldy(s.n + any_of(0, 3)),
        a(s.examples * s.rows * lda),
        b(s.examples * s.rows * ldb),
        y(s.m * ldy) {}

  void run(const ProductKernels& p, Block<T>& to) const { run(p, to, 0, 0, s.m, s.n); }

  // The block that begins at i and j, packed by itself.
  void run(const ProductKernels& p, Block<T>& to, std::int64_t i, std::int64_t j, std::int64_t m,
           std::int64_t n) const {
    const std::int64_t rows = s.examples * s.rows;
    Scratch left(p.tree_packed_bytes(rows, m, false)), right(p.tree_packed_bytes(rows, n, true));
    p.tree_pack(a.data() + i, lda, rows, m, false, left.data());
    p.tree_pack(b.data() + j, ldb, rows, n, true, right.data());
    Scratch scratch(p.matmul_tree_scratch_bytes(s.examples));
    p.matmul_tree({left.data(), right.data(), rows, 0, s.examples, s.rows, m, n},
                  to.data() + i * ldy + j, ldy, scratch.data());
  }

  Block<T> sum(const ProductKernels& p, std::int64_t begin, std::int64_t end) const {
    return testing::by_specification(
        begin, end - begin, 4, 1,
        [&](std::int64_t first, std::int64_t count) {
          Block<T> leaf = y;
          p.matmul_transposed(a.data() + first * s.rows * lda, lda, b.data() + first * s.rows * ldb,
                              ldb, count * s.rows, s.m, s.n, leaf.data(), ldy, false, nullptr);
          return leaf;
        },
        [&](Block<T> left, const Block<T>& right) {
          for (std::int64_t i = 0; i < s.m * s.n; ++i) {
            const std::int64_t at = i / s.n * ldy + i % s.n;
            left[at] = left[at] + right[at];
          }
          return left;
        });
  }
};

// NaN is NaN, whatever its payload.
template <class T>
bool same_values(const Block<T>& a, const Block<T>& b) {
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const bool nan = a[i] != a[i] && b[i] != b[i];
    if (!nan && std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return true;
}

template <class T>
void check_tree(const KernelTable& table, const ProductKernels& p, const TreeCase<T>& c) {
  const Sizes& s = c.s;
  Block<T> y = c.y;
  c.run(p, y);
  CHECK(same_values(y, c.sum(p, 0, s.examples)), table.isa, " ", sizeof(T), " examples ",
        s.examples, " of ", s.rows, " m ", s.m, " n ", s.n);
}

template <class F>
void for_each_size(const F& f) {
  for (std::int64_t examples = 1; examples <= 70; ++examples) {
    for (const std::int64_t rows : {1, 1, 2, 3, 7}) {
      f(Sizes{examples, rows, any_of(1, 20), any_of(1, 70)});
    }
  }
  for (std::int64_t size = 1; size <= 70; ++size) {
    f(Sizes{any_of(1, 40), 1, size, any_of(1, 40)});
    f(Sizes{any_of(1, 40), any_of(1, 3), any_of(1, 40), size});
  }
  for (const std::int64_t examples : {100, 128, 255, 256, 1000}) {
    for (const std::int64_t rows : {1, 3}) {
      f(Sizes{examples, rows, any_of(1, 30), any_of(1, 90)});
    }
  }
  f(Sizes{37, 1, 131, 257});
}

TEST("matmul_tree has the bits of leaves and joins, for any sizes and strides") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    for_each_size([&](Sizes s) { check_tree(table, p, TreeCase<decltype(zero)>(s)); });
  });
}

TEST("matmul_tree keeps what is infinite, not a number, or has no size but a sign") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const T special[] = {kInfinity, -kInfinity, std::numeric_limits<T>::quiet_NaN(),
                         T(-0.0),   0,          std::numeric_limits<T>::denorm_min()};
    for (int i = 0; i < 60; ++i) {
      TreeCase<T> c(Sizes{any_of(1, 40), any_of(1, 2), any_of(1, 20), any_of(1, 70)});
      for (Block<T>* x : {&c.a, &c.b}) {
        const std::int64_t count = any_of(0, 1) == 0 ? any_of(1, 5) : x->size();
        const std::int64_t kinds = count == x->size() ? 3 : 0;  // all zeros, or some of anything
        for (std::int64_t k = 0; k < count; ++k) {
          (*x)[kinds ? k : any_of(0, x->size() - 1)] = special[kinds ? any_of(3, 4) : any_of(0, 5)];
        }
      }
      check_tree(table, p, c);
    }
  });
}

TEST("matmul_tree is the same in all variants with fused multiply-add") {
  for_each_size([](Sizes s) {
    const TreeCase<float> c(s);
    std::vector<Block<float>> results;
    for_each_variant([&](const KernelTable& table) {
      if (!Chain(table).fused) return;
      results.push_back(c.y);
      c.run(table.product(DType::kFloat32), results.back());
      CHECK(same_bits(results.front(), results.back()), table.isa);
    });
  });
}

TEST("an element has the same bits in any block of the result") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    const TreeCase<T> c(Sizes{41, 1, 53, 91});
    Block<T> all = c.y, parts = c.y;
    c.run(p, all);
    for (std::int64_t i = 0, m = 0; i < c.s.m; i += m) {
      m = std::min(any_of(1, 20), c.s.m - i);
      for (std::int64_t j = 0, n = 0; j < c.s.n; j += n) {
        n = std::min(any_of(1, 50), c.s.n - j);
        c.run(p, parts, i, j, m, n);
      }
    }
    CHECK(same_bits(all, parts), table.isa);
  });
}

TEST("a block and a subtree of operands that are packed as a whole have the same bits") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    const TreeCase<T> c(Sizes{37, 2, 3 * kProductRowGrain - 5, 2 * kProductColumnGrain + 3});
    const std::int64_t rows = c.s.examples * c.s.rows, begin = 11, end = 37;
    Scratch left(p.tree_packed_bytes(rows, c.s.m, false));
    Scratch right(p.tree_packed_bytes(rows, c.s.n, true));
    p.tree_pack(c.a.data(), c.lda, rows, c.s.m, false, left.data());
    p.tree_pack(c.b.data(), c.ldb, rows, c.s.n, true, right.data());
    const Block<T> expected = c.sum(p, begin, end);
    // What is fetched meanwhile is only read.
    const Block<T> weights = c.y;
    PrefetchBlocks prefetch{
        {reinterpret_cast<const std::byte*>(weights.data())}, 1, c.ldy * std::int64_t(sizeof(T))};
    Block<T> found = c.y;
    for (std::int64_t i = 0; i < c.s.m; i += kProductRowGrain) {
      for (std::int64_t j = 0; j < c.s.n; j += kProductColumnGrain) {
        const std::int64_t m = std::min(kProductRowGrain, c.s.m - i);
        const std::int64_t n = std::min(kProductColumnGrain, c.s.n - j);
        Scratch scratch(p.matmul_tree_scratch_bytes(end - begin));
        const auto* a = static_cast<const T*>(static_cast<const void*>(left.data())) + i * rows;
        const auto* b = static_cast<const T*>(static_cast<const void*>(right.data())) + j * rows;
        p.matmul_tree({a, b, rows, begin * c.s.rows, end - begin, c.s.rows, m, n, &prefetch},
                      found.data() + i * c.ldy + j, c.ldy, scratch.data());
      }
    }
    CHECK(same_bits(expected, found), table.isa);
    CHECK(same_bits(weights, c.y), table.isa);
  });
}

// Rounds of products, whose rows are anywhere, and what they are added to.
template <class T>
struct RoundsCase {
  std::vector<TreeCase<T>> shares;  // round by round, one for each replica
  std::int64_t replicas;
  Block<T> y;

  static Sizes sizes(std::int64_t examples, const Sizes& s) { return {examples, s.rows, s.m, s.n}; }

  RoundsCase(std::int64_t rounds, std::int64_t of, const Sizes& s) : replicas(of), y(s.m * s.n) {
    for (std::int64_t i = 0; i < rounds * of; ++i) {
      TreeCase<T>& c = shares.emplace_back(sizes(any_of(0, s.examples), s));
      c.lda = s.m, c.ldb = s.n, c.ldy = s.n;
    }
  }

  // The products of a round, summed over the replicas.
  Block<T> sum(const ProductKernels& p, std::size_t first, std::int64_t count) const {
    return testing::by_specification(
        std::int64_t(first), count, 1, 1,
        [&](std::int64_t at, std::int64_t) {
          const TreeCase<T>& c = shares[std::size_t(at)];
          Block<T> product(y.size());
          if (c.s.examples > 0) {
            c.run(p, product);
          } else {
            std::fill_n(product.data(), product.size(), T(0));
          }
          return product;
        },
        added);
  }

  static Block<T> added(Block<T> x, const Block<T>& other) {
    for (std::int64_t i = 0; i < x.size(); ++i) x[i] = x[i] + other[i];
    return x;
  }

  std::vector<TreeShare> list() const {
    std::vector<TreeShare> listed;
    for (std::size_t first = 0; first < shares.size(); first += std::size_t(replicas)) {
      for_each_leaf(kReplicaTree, {0, replicas}, [&](const TreeStep& replica) {
        const TreeCase<T>& c = shares[first + std::size_t(replica.range.begin)];
        listed.push_back({c.a.data(), c.b.data(), c.s.examples, replica.joins});
      });
      ++listed.back().joins;
    }
    return listed;
  }
};

TEST("matmul_tree_add has the bits of one product after the other, in any blocks") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    for (int i = 0; i < 60; ++i) {
      const Sizes s{any_of(0, 1) ? 40 : 5, any_of(1, 2), any_of(1, 40), any_of(1, 70)};
      const RoundsCase<T> c(any_of(1, 6), any_of(1, 5), s);
      Block<T> expected = c.y, found = c.y;
      for (std::size_t k = 0; k < c.shares.size(); k += std::size_t(c.replicas)) {
        expected = c.added(expected, c.sum(p, k, c.replicas));
      }
      const std::vector<TreeShare> shares = c.list();
      const TreeSum sum{shares, s.rows, s.m, s.n};
      for (std::int64_t row = 0, m = 0; row < s.m; row += m) {
        m = std::min(any_of(1, 40), s.m - row);
        for (std::int64_t column = 0, n = 0; column < s.n; column += n) {
          n = std::min(any_of(1, 70), s.n - column);
          Scratch scratch(p.matmul_tree_add_scratch_bytes(sum, m, n));
          p.matmul_tree_add(sum, row, column, m, n, found.data() + row * s.n + column, s.n,
                            scratch.data());
        }
      }
      CHECK(same_bits(expected, found), table.isa, " ", sizeof(T), " of ", s.examples, " rows ",
            s.rows, " m ", s.m, " n ", s.n, " rounds ", c.shares.size());
    }
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
