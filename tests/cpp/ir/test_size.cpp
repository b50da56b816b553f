// Sizes as polynomials in counts, and what a trace decides about them.
#include <random>

#include "base/error.h"
#include "check.h"
#include "error_message.h"
#include "ir/type.h"

namespace samegrad::testing {
namespace {

const Size n = Size::of_symbol(0), m = Size::of_symbol(1);

Symbols two_counts(std::vector<std::int64_t> of_n, std::int64_t of_m) {
  Symbols symbols(2);
  symbols[0].traced_count = of_n[0];
  if (of_n.size() > 1) symbols[0].traced_counts = std::move(of_n);
  symbols[1].traced_count = of_m;
  return symbols;
}

TEST("sizes have one form, however they were computed") {
  CHECK((n + 1) * (n - 1) == n * n - 1);
  CHECK(n * m + m * n == Size(2) * m * n);
  CHECK(n - n == Size(0));
  CHECK(!(n == m));
  CHECK_EQ(((n * n + m).value({7, 300})), 349);
  CHECK_EQ((n - n + 5).number().value_or(-1), 5);
  CHECK(!n.number() && n.symbol() == 0 && !(n * 2).symbol());
}

TEST("sums, products and quotients of random sizes are those of their values") {
  std::mt19937 generator(3);
  const auto up_to = [&](int most) { return int(generator() % unsigned(most + 1)); };
  const auto any_size = [&] {
    Size sum = up_to(6) - 3;
    for (int terms = up_to(3); terms > 0; --terms) {
      Size product = up_to(6) - 3;
      for (int factors = up_to(2); factors > 0; --factors) product = product * (up_to(1) ? n : m);
      sum = sum + product;
    }
    return sum;
  };
  for (int i = 0; i < 2000; ++i) {
    const Size a = any_size(), b = any_size(), product = a * b;
    for (const std::vector<std::int64_t>& counts : {std::vector<std::int64_t>{0, 1}, {7, 300}}) {
      const std::int64_t x = a.value(counts), y = b.value(counts);
      CHECK_EQ((a + b).value(counts), x + y);
      CHECK_EQ((a - b).value(counts), x - y);
      CHECK_EQ(product.value(counts), x * y);
      CHECK(!a.never_negative() || x >= 0);
      CHECK_EQ(a.number().value_or(x), x);
      CHECK_EQ(a.with_symbols([](int symbol) { return 1 - symbol; }).value({counts[1], counts[0]}),
               x);
    }
    CHECK(product == b * a && (b == Size(0) || product.over(b) == a));
    Size of_terms;
    for (const auto& [factors, coefficient] : a.terms()) {
      CHECK(coefficient != 0);
      Size term = coefficient;
      for (const int symbol : factors) term = term * Size::of_symbol(symbol);
      of_terms = of_terms + term;
    }
    CHECK(of_terms == a && a.symbols().empty() == a.number().has_value());
  }
}

TEST("a quotient of sizes is exact or none") {
  CHECK((n * n * 6).over(n * 2) == n * 3);
  CHECK((n * n - m * m).over(n + m) == n - m);
  CHECK(!n.over(Size(2)) && !n.over(m) && !n.over(Size(0)));
  CHECK(Size(0).over(n) == Size(0));
  CHECK(!(n * 5).over(Size(3)));
}

TEST("only sizes without negative parts are never negative") {
  CHECK((n * m + 3).never_negative());
  CHECK(!(n - 1).never_negative());
}

TEST("shapes hold a size as one symbol wherever it stands") {
  Symbols symbols = two_counts({4}, 9);
  const std::int64_t square = dim_of(symbols, n * n);
  CHECK(is_symbolic(square));
  CHECK_EQ(dim_of(symbols, (n + 1) * n - n), square);
  CHECK_EQ(dim_of(symbols, n), kSymbols);
  CHECK_EQ(dim_of(symbols, n - n + 3), 3);
  CHECK_EQ(symbols.size(), 3u);
  const ValueType type{DType::kFloat32, {square, kBatchDim, kSymbols + 1}, {1, 2, 0}};
  CHECK(concrete_shape(type, {3, 5, 9}) == Shape({9, 6, 5}));
  CHECK_EQ(to_string(type.shape), "(?, ?, ?)");
}

TEST("derived counts follow those of each replica") {
  Symbols symbols = two_counts({4, 3}, 9);
  const std::int64_t dim = dim_of(symbols, n * n + m);
  CHECK(symbols[std::size_t(dim - kSymbols)].traced_counts == std::vector<std::int64_t>({25, 18}));
  Symbol half;
  half.kind = Symbol::Kind::kQuotient;
  half.parts = {0};
  half.step = 2;
  CHECK_EQ(symbols[std::size_t(derived_symbol(symbols, half))].traced_counts[1], 1);
  std::vector<std::int64_t> counts{300, 0};
  complete_counts(symbols, counts);
  CHECK_EQ(counts[2], 90000);
  CHECK_EQ(counts[3], 150);
}

TEST("what polynomials decide binds a program to nothing") {
  Symbols symbols = two_counts({4, 3}, 9);
  CHECK(!decide(symbols, n - n - 1, [](std::int64_t d) { return d == 0; }));
  CHECK(!symbols[0].fixed && !symbols[1].fixed);
}

bool is_zero(std::int64_t d) {
  return d == 0;
}

TEST("what the counts decide binds it") {
  Symbols symbols = two_counts({4, 3}, 9);
  CHECK(!decide(symbols, n - 5, is_zero));
  CHECK(symbols[0].fixed && !symbols[1].fixed);
  CHECK_EQ(bound_size(symbols, m * 2), 18);
  CHECK(symbols[1].fixed);
  CHECK(symbols.replicas.empty());
}

TEST("a trace goes on for the replicas that agree with the one with the most examples") {
  Symbols symbols = two_counts({3, 5, 4, 5}, 9);
  CHECK(!decide(symbols, n - 3, is_zero));
  CHECK(symbols.replicas == std::vector<int>({1, 2, 3}));
  CHECK(!bound_count(symbols, 0));
  CHECK_EQ(bound_size(symbols, n * 2), 10);
  CHECK(symbols.replicas == std::vector<int>({1, 3}));
  CHECK(bound_count(symbols, 0) == 5);
  CHECK(traced_counts(symbols) == std::vector<std::vector<std::int64_t>>({{5, 9}, {5, 9}}));
  CHECK_EQ(counts_of_all(symbols)[0][0], 3);
  // What is derived later has a count on all replicas.
  const std::int64_t dim = dim_of(symbols, n + 1);
  CHECK(symbols[std::size_t(dim - kSymbols)].traced_counts ==
        std::vector<std::int64_t>({4, 6, 5, 6}));
}

TEST("the trace of the replicas that are left decides by theirs") {
  Symbols symbols = two_counts({3, 5, 0, 3}, 9);
  symbols.replicas = {0, 2, 3};
  CHECK_EQ(bound_size(symbols, n), 3);
  CHECK(symbols.replicas == std::vector<int>({0, 3}));
  CHECK(is_one({{}, {}}, {DType::kFloat32, {1}, {}}, 0));
}

TEST("a size below nothing is refused") {
  CHECK(message_of([] { concrete_size(kSymbols, {-1}); }).find("got -1") != std::string::npos);
}

}  // namespace
}  // namespace samegrad::testing
