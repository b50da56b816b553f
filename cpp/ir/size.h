// Sizes that follow from counts of examples: polynomials with whole coefficients in symbols.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace samegrad {

class Size {
 public:
  Size(std::int64_t number = 0) : constant_(number) {}  // NOLINT: every number is a size
  static Size of_symbol(int symbol);

  // The value, where no symbol decides it.
  std::optional<std::int64_t> number() const;
  // The value for the counts of the symbols.
  std::int64_t value(const std::vector<std::int64_t>& counts) const;
  std::vector<int> symbols() const;
  // The symbol that this is, if it is nothing else.
  std::optional<int> symbol() const;

  // The size in other symbols: each becomes map(symbol).
  Size with_symbols(const std::function<int(int)>& map) const;
  // The size with each symbol replaced by map(symbol).
  Size with_sizes(const std::function<Size(int)>& map) const;

  // The value of the symbol where this size is 0. Absent unless the symbol occurs in a single term
  // that neither multiplies nor divides it.
  std::optional<Size> solved_for(int symbol) const;

  // For people: "2 x (n) - 3", by names of the symbols.
  std::string to_string(const std::function<std::string(int)>& name) const;

  // Symbols in ascending order, repeated for powers.
  using Factors = std::vector<int>;
  // By degree, so that the order is kept when both sides are multiplied.
  struct ByDegree {
    bool operator()(const Factors& a, const Factors& b) const {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
  };
  // The coefficients of products of symbols; none is 0.
  using Terms = std::map<Factors, std::int64_t, ByDegree>;
  Terms terms() const;

  // True if the signs show that the size is 0 or more for all counts.
  bool never_negative() const;

  Size operator+(const Size& other) const;
  Size operator-(const Size& other) const;
  Size operator*(const Size& other) const;
  // The quotient, if there is one whatever the counts are.
  std::optional<Size> over(const Size& divisor) const;
  bool operator==(const Size&) const = default;

 private:
  void add(const Factors& factors, std::int64_t coefficient);

  // The constant term, and the others. Most sizes have a constant term alone, and need no memory.
  std::int64_t constant_;
  Terms symbolic_;
};

}  // namespace samegrad
