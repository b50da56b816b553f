// The one order in which everything is summed along the example axis.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/order.h"

namespace samegrad {

// Calls leaf(begin, end, level) for every leaf from left to right and add(level) when the halves of
// a node are done: the right half is at level + 1, the left one (and then the sum) at level.
template <class Leaf, class Add>
void walk_tree(std::int64_t begin, std::int64_t end, std::int64_t leaf_size, int level, Leaf&& leaf,
               Add&& add) {
  const std::int64_t n = end - begin;
  if (n <= leaf_size) {
    leaf(begin, end, level);
    return;
  }
  const std::int64_t middle = begin + tree_split(n);
  walk_tree(begin, middle, leaf_size, level, leaf, add);
  walk_tree(middle, end, leaf_size, level + 1, leaf, add);
  add(level);
}

// Levels walk_tree uses for n examples, the root's included.
constexpr int tree_levels(std::int64_t n, std::int64_t leaf_size) {
  int levels = 1;
  for (; n > leaf_size; n = tree_split(n)) ++levels;
  return levels;
}

// The sum of x[0], x[1], … in the order of the tree, of `bytes` bytes, goes to out, which is none
// of them. Partial sums are in scratch, `stride` bytes for each of tree_levels(x.size(), 1) levels.
// add(a, b, sum) adds two arrays; sum may be a.
template <class Add>
void sum_along_tree(std::span<const std::byte* const> x, std::byte* out, std::int64_t bytes,
                    std::byte* scratch, std::int64_t stride, Add&& add) {
  std::array<const std::byte*, 64> at{};
  walk_tree(
      0, std::int64_t(x.size()), 1, 0,
      [&](std::int64_t i, std::int64_t, int level) { at[std::size_t(level)] = x[std::size_t(i)]; },
      [&](int level) {
        std::byte* sum = level == 0 ? out : scratch + level * stride;
        add(at[std::size_t(level)], at[std::size_t(level) + 1], sum);
        at[std::size_t(level)] = sum;
      });
  if (at[0] != out) std::copy_n(at[0], bytes, out);
}

}  // namespace samegrad
