// The reduction order as docs/numerics.md states it, without a line of the engine's.
#pragma once

#include <cstdint>

namespace samegrad::testing {

// The sum of the elements [first, first + n): leaf(first, n) if there are at most `most`, and else
// join(left, right) of its halves in units of `unit`.
template <class Leaf, class Join>
auto by_specification(std::int64_t first, std::int64_t n, std::int64_t most, std::int64_t unit,
                      const Leaf& leaf, const Join& join) -> decltype(leaf(first, n)) {
  if (n <= most) return leaf(first, n);
  std::int64_t units = 0;
  while (units * unit < n) ++units;
  const std::int64_t left = (units - units / 2) * unit;
  auto sum = by_specification(first, left, most, unit, leaf, join);
  return join(sum, by_specification(first + left, n - left, most, unit, leaf, join));
}

}  // namespace samegrad::testing
