// Quotients and multiples, rounded up: of an integer n >= 0, by a positive one.
#pragma once

#include <concepts>

namespace samegrad {

// The least integer that is not less than n / by.
constexpr auto divide_up(std::integral auto n, std::integral auto by) {
  return (n + by - 1) / by;
}

// The least multiple of the unit that is not less than n.
constexpr auto round_up(std::integral auto n, std::integral auto unit) {
  return divide_up(n, unit) * unit;
}

}  // namespace samegrad
