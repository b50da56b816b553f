// The reduction order: the constants and rules that decide which additions a sum consists of.
// docs/numerics.md specifies it in the same terms. A result of one element has leaves of one
// example (ops/reduce_kernel.h).
//
// Nothing else decides an order: cost, machine, threads and thresholds choose among plans of equal
// bits. A change that changes bits raises kReductionOrder.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/rounding.h"

namespace samegrad {

// Raised with each change of this file, or of its use, that changes bits. Checkpoints record it.
//   1  a binary tree over the examples of each replica's batch
//   2  long sums and contractions inside an example are cut into blocks
//   3  the gradient of a matrix of sequences is one sum over examples and time steps
//   4  the tree is over the examples of the global batch, for any division of it
inline constexpr int kReductionOrder = 4;

// ---- halving ----

// Elements, examples or replicas next to each other.
struct TreeRange {
  std::int64_t begin, end;

  constexpr std::int64_t size() const { return end - begin; }
  bool operator==(const TreeRange&) const = default;
};

// The rule by which a range is divided: n elements are ⌈n / kUnit⌉ units, and the left half has the
// larger half of these. Halves are divided until at most `leaf` elements, some units, are left.
template <std::int64_t kUnit = 1>
struct Halving {
  std::int64_t leaf = kUnit;

  struct Halves {
    TreeRange left, right;
  };

  static constexpr std::int64_t units(std::int64_t n) { return divide_up(n, kUnit); }
  // The size of the left half of n elements.
  static constexpr std::int64_t left(std::int64_t n) { return (units(n) + 1) / 2 * kUnit; }
  static constexpr Halves halves(TreeRange range) {
    const std::int64_t middle = range.begin + left(range.size());
    return {{range.begin, middle}, {middle, range.end}};
  }
  constexpr bool is_leaf(TreeRange range) const { return range.size() <= leaf; }

  constexpr TreeRange last_leaf(TreeRange range) const {
    while (!is_leaf(range)) range = halves(range).right;
    return range;
  }
  // The levels that walk_tree has for n elements, the root's included.
  constexpr int levels(std::int64_t n) const {
    if (n <= leaf) return 1;
    return 1 + std::bit_width(static_cast<std::uint64_t>((n - 1) / leaf));
  }
  // Number i, from the left, of the 2^levels subtrees that are `levels` halvings below a range.
  static constexpr TreeRange subtree(TreeRange range, int levels, std::int64_t i) {
    for (int level = levels - 1; level >= 0; --level) {
      range = i >> level & 1 ? halves(range).right : halves(range).left;
    }
    return range;
  }
};

// More levels than any tree has.
inline constexpr std::size_t kMaxTreeLevels = 64;

// ---- over examples and replicas ----

// A leaf holds at most this many examples, summed in order.
inline constexpr std::int64_t kLeafExamples = 4;
inline constexpr Halving<> kExampleTree{kLeafExamples};
// Values without examples, and the results of subtrees.
inline constexpr Halving<> kReplicaTree{1};

// ---- inside an example: blocks, so that the error of a sum stays bounded by the length of a block
// and the depth of the tree ----

// Lanes of a sum along a row: one for each element in this many bytes. Behind a block, lane j adds
// lane j + d, for d = lanes / 2, lanes / 4, … 1.
inline constexpr std::int64_t kLaneBytes = 64;
template <class T>
inline constexpr std::int64_t kRowLanes = kLaneBytes / static_cast<std::int64_t>(sizeof(T));
// Elements of a row that its lanes add one after the other.
inline constexpr std::int64_t kRowBlock = 1024;
inline constexpr Halving<kRowBlock> kRowTree{};
// Rows that are added to each other one after the other, column by column.
inline constexpr std::int64_t kColumnBlock = 128;
inline constexpr Halving<kColumnBlock> kColumnTree{};
// Elements of a cumulative sum's block, and blocks of a block of the next level.
inline constexpr std::int64_t kScanBlock = 128;
// Products that one chain of fused multiply-adds adds up.
inline constexpr std::int64_t kContractionBlock = 4096;
inline constexpr Halving<kContractionBlock> kContractionTree{};
// Values of one example with one index.
inline constexpr Halving<> kIndexTree{128};

// True if a leaf of examples is one chain over their rows. Else each example is summed first.
constexpr bool leaf_is_one_chain(std::int64_t rows_per_example) {
  return kLeafExamples * rows_per_example <= kContractionBlock;
}

// ---- the tree at once ----

// The reduction of a range: leaf(range), or join(left, right) of the reductions of its halves.
//
// A rule has is_leaf(range) and halves(range), as Halving. If it has is_empty(range), an empty half
// is left out, and the other one is the whole. Inlined into itself, it would be many leaves long.
template <class Rule, class Range, class Leaf, class Join>
[[gnu::noinline]] constexpr auto reduce_tree(const Rule& rule, Range range, const Leaf& leaf,
                                             const Join& join) -> decltype(leaf(range)) {
  if (rule.is_leaf(range)) return leaf(range);
  const auto [left, right] = rule.halves(range);
  if constexpr (requires { rule.is_empty(range); }) {
    if (rule.is_empty(right)) return reduce_tree(rule, left, leaf, join);
    if (rule.is_empty(left)) return reduce_tree(rule, right, leaf, join);
  }
  auto sum = reduce_tree(rule, left, leaf, join);
  return join(sum, reduce_tree(rule, right, leaf, join));
}

// Reduces a tree like reduce_tree(), but with results in memory, one for each level:
// leaf(range, level) makes one, and join(level) adds that of level + 1 to that of the level.
template <class Rule, class Range, class Leaf, class Join>
constexpr void walk_tree(const Rule& rule, Range range, const Leaf& leaf, const Join& join) {
  struct Done {};
  int level = 0;  // results that wait for their right halves
  reduce_tree(
      rule, range,
      [&](const Range& of) {
        leaf(of, level++);
        return Done{};
      },
      [&](Done, Done) {
        join(--level - 1);
        return Done{};
      });
}

// Joins the results of the subtrees `levels` below each of several ranges: join(left, right) of
// their numbers adds right to left.
template <class Join>
constexpr void join_levels(std::int64_t subtrees, int levels, const Join& join) {
  for (int level = 0; level < levels; ++level) {
    const std::int64_t width = std::int64_t(1) << level;
    for (std::int64_t left = 0; left < subtrees; left += 2 * width) join(left, left + width);
  }
}

// ---- the tree over what is named ----

// A range, and the places in it of an ordered list.
struct NamedRange {
  TreeRange range;
  const std::int64_t *begin, *end;
};

// The rule that leaves out halves without a place. split(named, i) is the first place of element i
// or later.
template <class Split>
struct NamedHalving {
  Halving<> tree;
  Split split;

  struct Halves {
    NamedRange left, right;
  };

  constexpr bool is_leaf(const NamedRange& named) const { return tree.is_leaf(named.range); }
  constexpr bool is_empty(const NamedRange& named) const { return named.begin == named.end; }
  constexpr Halves halves(const NamedRange& named) const {
    const auto [left, right] = tree.halves(named.range);
    const std::int64_t* middle = split(named, right.begin);
    return {{left, named.begin, middle}, {right, middle, named.end}};
  }
};

// ---- the tree leaf by leaf ----

// A leaf, or a subtree taken at once: its result is made at a level, and then `joins` right halves
// are complete, each of which is added to the level before it.
struct TreeStep {
  TreeRange range;
  int level, joins;
};

// Goes through the tree from left to right. The range may be cut anywhere: a step tells where.
class ReductionCursor {
 public:
  explicit constexpr ReductionCursor(TreeRange range) { pending_[0] = {range, 0, 0}; }

  constexpr bool done() const { return count_ == 0; }
  // The largest subtree that is next and ends at `end` or before, or else the next leaf.
  template <class Rule>
  constexpr TreeStep next(const Rule& rule, std::int64_t end = INT64_MIN) {
    TreeStep step = pending_[static_cast<std::size_t>(--count_)];
    while (!rule.is_leaf(step.range) && step.range.end > end) {
      const auto [left, right] = rule.halves(step.range);
      pending_[static_cast<std::size_t>(count_++)] = {right, 0, step.joins + 1};
      step = {left, 0, 0};
    }
    step.level = level_;
    level_ += 1 - step.joins;
    return step;
  }

 private:
  std::array<TreeStep, kMaxTreeLevels> pending_;  // right halves, the next one last
  int count_ = 1;
  int level_ = 0;  // of the next step
};

// Calls f for the leaves from left to right.
template <class Rule, class F>
constexpr void for_each_leaf(const Rule& rule, TreeRange range, F&& f) {
  for (ReductionCursor cursor(range); !cursor.done();) f(cursor.next(rule));
}

}  // namespace samegrad
