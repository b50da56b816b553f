// The parts of the tree over replicas that processes have, and how they are joined.
#pragma once

#include <span>
#include <vector>

#include "runtime/communicator.h"
#include "tensor/tree.h"

namespace samegrad {

// The largest subtrees of the tree over so many replicas that are in a range, from left to right:
// one where the range is such a subtree, never more than 2 · log2(replicas).
std::vector<ReplicaRange> maximal_subtrees(int replicas, ReplicaRange within);

// Calls leaf(level) for the subtrees from left to right and add(level), as walk_tree does, where
// `next` is the first one that has not been visited.
template <class Subtree, class Leaf, class Add>
void join_subtrees(ReplicaRange tree, int level, std::span<const Subtree> subtrees,
                   std::size_t& next, const Leaf& leaf, const Add& add) {
  if (subtrees[next].replicas == tree) {
    leaf(next++, level);
    return;
  }
  const int middle = tree.begin + int(tree_split(tree.end - tree.begin));
  join_subtrees({tree.begin, middle}, level, subtrees, next, leaf, add);
  join_subtrees({middle, tree.end}, level + 1, subtrees, next, leaf, add);
  add(level);
}

}  // namespace samegrad
