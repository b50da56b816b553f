#include "ir/size.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/shape.h"

namespace samegrad {
namespace {

using Factors = std::vector<int>;

// a without the factors of b; absent if a lacks one of them.
std::optional<Factors> without(const Factors& a, const Factors& b) {
  if (!std::ranges::includes(a, b)) return std::nullopt;
  Factors rest;
  std::ranges::set_difference(a, b, std::back_inserter(rest));
  return rest;
}

}  // namespace

Size Size::of_symbol(int symbol) {
  Size size;
  size.add({symbol}, 1);
  return size;
}

void Size::add(const Factors& factors, std::int64_t coefficient) {
  if (factors.empty()) {
    constant_ = size_sum(constant_, coefficient);
    return;
  }
  const auto at = symbolic_.try_emplace(factors, 0).first;
  at->second = size_sum(at->second, coefficient);
  if (at->second == 0) symbolic_.erase(at);
}

Size::Terms Size::terms() const {
  Terms all = symbolic_;
  if (constant_ != 0) all.emplace(Factors(), constant_);
  return all;
}

std::optional<std::int64_t> Size::number() const {
  return symbolic_.empty() ? std::optional(constant_) : std::nullopt;
}

std::int64_t Size::value(const std::vector<std::int64_t>& counts) const {
  std::int64_t sum = constant_;
  for (const auto& [factors, coefficient] : symbolic_) {
    std::int64_t product = coefficient;
    for (int symbol : factors) product = size_product(product, counts[std::size_t(symbol)]);
    sum = size_sum(sum, product);
  }
  return sum;
}

std::vector<int> Size::symbols() const {
  std::set<int> found;
  for (const auto& [factors, coefficient] : symbolic_) found.insert(factors.begin(), factors.end());
  return {found.begin(), found.end()};
}

std::optional<int> Size::symbol() const {
  if (symbolic_.size() != 1 || constant_ != 0) return std::nullopt;
  const auto& [factors, coefficient] = *symbolic_.begin();
  if (factors.size() != 1 || coefficient != 1) return std::nullopt;
  return factors[0];
}

Size Size::with_symbols(const std::function<int(int)>& map) const {
  Size mapped = constant_;
  for (const auto& [factors, coefficient] : symbolic_) {
    Factors others;
    for (int symbol : factors) others.push_back(map(symbol));
    std::ranges::sort(others);
    mapped.add(others, coefficient);
  }
  return mapped;
}

Size Size::with_sizes(const std::function<Size(int)>& map) const {
  Size sum = constant_;
  for (const auto& [factors, coefficient] : symbolic_) {
    Size product = coefficient;
    for (int symbol : factors) product = product * map(symbol);
    sum = sum + product;
  }
  return sum;
}

std::optional<Size> Size::solved_for(int symbol) const {
  const auto own = symbolic_.find(Factors{symbol});
  if (own == symbolic_.end() || std::abs(own->second) != 1) return std::nullopt;
  Size rest = -constant_ * own->second;
  for (const auto& [factors, coefficient] : symbolic_) {
    if (factors == own->first) continue;
    if (std::ranges::find(factors, symbol) != factors.end()) return std::nullopt;
    rest.add(factors, -coefficient * own->second);
  }
  return rest;
}

std::string Size::to_string(const std::function<std::string(int)>& name) const {
  std::string out;
  const Terms all = terms();
  for (auto term = all.rbegin(); term != all.rend(); ++term) {
    const auto& [factors, coefficient] = *term;
    const bool minus = coefficient < 0;
    if (!out.empty() || minus) out += out.empty() ? "-" : minus ? " - " : " + ";
    const std::string digits = std::to_string(coefficient).substr(minus ? 1 : 0);
    if (factors.empty() || digits != "1") out += digits + (factors.empty() ? "" : " x ");
    for (std::size_t i = 0; i < factors.size(); ++i) {
      out += (i ? " x (" : "(") + name(factors[i]) + ")";
    }
  }
  return out.empty() ? "0" : out;
}

bool Size::never_negative() const {
  return constant_ >= 0 &&
         std::ranges::all_of(symbolic_, [](const auto& term) { return term.second >= 0; });
}

Size Size::operator+(const Size& other) const {
  Size sum = *this;
  sum.constant_ = size_sum(constant_, other.constant_);
  for (const auto& [factors, coefficient] : other.symbolic_) sum.add(factors, coefficient);
  return sum;
}

Size Size::operator-(const Size& other) const {
  return *this + other * Size(-1);
}

Size Size::operator*(const Size& other) const {
  if (number() && other.number()) return size_product(constant_, other.constant_);
  Size product;
  const Terms others = other.terms();
  for (const auto& [a, x] : terms()) {
    for (const auto& [b, y] : others) {
      Factors both;
      std::ranges::merge(a, b, std::back_inserter(both));
      product.add(both, size_product(x, y));
    }
  }
  return product;
}

std::optional<Size> Size::over(const Size& divisor) const {
  if (divisor == Size(0)) return std::nullopt;
  if (number() && divisor.number()) {
    if (constant_ % divisor.constant_ != 0) return std::nullopt;
    return constant_ / divisor.constant_;
  }
  const auto [below, by] = *divisor.terms().rbegin();
  Size quotient, rest = *this;
  while (rest != Size(0)) {
    const auto [above, what] = *rest.terms().rbegin();
    const std::optional<Factors> factors = without(above, below);
    if (!factors || what % by != 0) return std::nullopt;
    Size term;
    term.add(*factors, what / by);
    quotient = quotient + term;
    rest = rest - term * divisor;
  }
  return quotient;
}

}  // namespace samegrad
