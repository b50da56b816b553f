// The one order in which everything is summed along the example axis.
#pragma once

#include <cstdint>

namespace samegrad {

// A leaf holds at most this many examples, summed in order; larger ranges are halved.
inline constexpr std::int64_t kLeafExamples = 4;

// Where [0, n) is divided: the first part has the larger half.
constexpr std::int64_t tree_split(std::int64_t n) {
  return (n + 1) / 2;
}

// Calls leaf(begin, end, level) for every leaf from left to right and add(level) when the halves of
// a node are done: the right half lies at level + 1, the left one (and then the sum) at level.
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

}  // namespace samegrad
