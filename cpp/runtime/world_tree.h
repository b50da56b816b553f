// The top of the tree over the examples or replicas of all processes: the subtrees that each
// process reduces by itself, and the order in which these are summed.
#pragma once

#include <span>
#include <vector>

#include "base/dtype.h"
#include "tensor/tree.h"

namespace samegrad {

// Leaves of a tree that are next to each other: examples or replicas.
struct TreeRange {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
  bool operator==(const TreeRange&) const = default;
};

class WorldTree {
 public:
  struct Subtree {
    int rank;
    TreeRange range;  // of the world
  };

  // Rank r has [firsts[r], firsts[r + 1]). A leaf of the tree (so many, added in order) is made by
  // the rank that has its first one.
  WorldTree(std::vector<std::int64_t> firsts, std::int64_t leaf, int rank);

  // The largest subtrees that each rank makes, from left to right.
  std::span<const Subtree> all() const { return all_; }
  // The same of this process, numbered from its first one.
  std::span<const TreeRange> own() const { return own_; }
  std::int64_t subtrees_of(int rank) const { return counts_[std::size_t(rank)]; }
  // The greatest number of subtrees of a rank.
  std::int64_t most() const;
  std::int64_t size() const { return firsts_.back(); }
  // The leaves of a rank, and those that follow them in the last one that the rank makes.
  TreeRange range_of(int rank) const {
    return {firsts_[std::size_t(rank)], firsts_[std::size_t(rank) + 1]};
  }
  TreeRange after(int rank) const;

  // x[i] is where all()[i] has the numbers. Those of bfloat16 are added in float32, and rounded
  // once.
  void add(DType dtype, std::span<const std::byte* const> x, std::int64_t n, std::byte* out) const;

 private:
  int owner_of(std::int64_t first) const;
  int last_owner_of(TreeRange tree) const;
  void find_subtrees(TreeRange tree);
  void add_block(DType dtype, std::span<const std::byte* const> x, std::int64_t n,
                 std::byte* out) const;
  void add_narrow_block(std::span<const std::byte* const> x, std::int64_t n, std::byte* out) const;

  std::vector<std::int64_t> firsts_;
  std::int64_t leaf_;
  std::vector<Subtree> all_;
  std::vector<TreeRange> own_;
  std::vector<std::int64_t> counts_;  // of subtrees, per rank
};

// Calls leaf(i, level) for the subtrees from left to right and add(level), as walk_tree does, where
// `next` is the first one that has not been visited.
template <class Leaf, class Add>
void join_subtrees(TreeRange tree, int level, std::span<const WorldTree::Subtree> subtrees,
                   std::size_t& next, const Leaf& leaf, const Add& add) {
  if (subtrees[next].range == tree) {
    leaf(next++, level);
    return;
  }
  const std::int64_t middle = tree.begin + tree_split(tree.size());
  join_subtrees({tree.begin, middle}, level, subtrees, next, leaf, add);
  join_subtrees({middle, tree.end}, level + 1, subtrees, next, leaf, add);
  add(level);
}

}  // namespace samegrad
