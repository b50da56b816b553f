// The top of the tree over the examples or replicas of all processes: the subtrees that each
// process reduces by itself, and the order in which these are summed.
#pragma once

#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/reduction_order.h"

namespace samegrad {

class WorldTree {
 public:
  struct Subtree {
    int rank;
    TreeRange range;  // of the world
  };

  // Rank r has [firsts[r], firsts[r + 1]). A leaf of the tree (so many, added in order) is made by
  // the rank that has its first one.
  WorldTree(std::vector<std::int64_t> firsts, const Halving<>& tree, int rank);

  // The largest subtrees that each rank makes, from left to right.
  std::span<const Subtree> all() const { return all_; }
  // The subtrees of this process, numbered from its first one.
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
  void add_block(DType dtype, std::span<const std::byte* const> x, std::int64_t n,
                 std::byte* out) const;
  void add_narrow_block(std::span<const std::byte* const> x, std::int64_t n, std::byte* out) const;

  std::vector<std::int64_t> firsts_;
  std::vector<Subtree> all_;
  std::vector<TreeRange> own_;
  std::vector<std::int64_t> counts_;  // of subtrees, per rank
};

// Calls leaf(i, level) for the subtrees from left to right and add(level), as walk_tree.
template <class Leaf, class Add>
void join_subtrees(TreeRange tree, std::span<const WorldTree::Subtree> subtrees, const Leaf& leaf,
                   const Add& add) {
  struct Listed : Halving<> {
    std::span<const WorldTree::Subtree> subtrees;
    std::size_t next = 0;  // that has not been visited

    bool is_leaf(TreeRange range) const { return subtrees[next].range == range; }
  } listed{{}, subtrees};
  walk_tree(
      listed, tree, [&](TreeRange, int level) { leaf(listed.next++, level); }, add);
}

}  // namespace samegrad
