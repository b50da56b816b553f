// Folds examples into an accumulator in the order of the tree, in pieces of any size.
#pragma once

#include "tensor/tree_kernel.h"

namespace samegrad {

// A block of a state that is folded by itself, and where things are in it.
struct TileSet {
  TileSet(const AccumulatorShape& shape, const Rect& block);

  Rect block;
  std::array<std::int64_t, kMaxStateBuffers> item;  // bytes of an element, per buffer
  // In one piece of memory: where the buffers begin, and the bytes of all of them.
  std::array<std::int64_t, kMaxStateBuffers> offset = {};
  std::int64_t bytes = 0;

  // The state in a piece of memory. For all buffers that there may be, so that it stays in
  // registers: a state that is written and copied at once makes the copy wait.
  Accumulator at(std::byte* memory) const {
    Accumulator state{{}, block.columns};
    for (std::size_t i = 0; i < kMaxStateBuffers; ++i) state.data[i] = memory + offset[i];
    return state;
  }
  // A block of it, in a state of the extent.
  Accumulator part(Accumulator state, const Rect& of) const {
    const std::int64_t first = (of.row - block.row) * state.stride + of.column - block.column;
    for (std::size_t i = 0; i < kMaxStateBuffers; ++i) state.data[i] += first * item[i];
    return state;
  }
  // It is cut into blocks whose states stay in the first cache through all levels of the tree,
  // unless the op knows better (AccumulatorShape::block_bytes).
  std::int64_t cuts() const { return cuts_down_ * cuts_across_; }
  Rect cut(std::int64_t i) const;

 private:
  std::int64_t cut_rows_, cut_columns_;
  std::int64_t cuts_down_, cuts_across_;
};

// An op that adds to a state, and all about it that does not depend on the examples.
struct TreeReduction {
  const TreeKernel* kernel;
  const Attrs* attrs;
  AccumulatorShape state;
  TileSet whole;
  Halving<> tree = kExampleTree;
  DType dtype;

  TreeReduction(const TreeKernel& kernel, const Attrs& attrs, std::span<const View> in,
                const View& result);

  // The blocks that so many tasks share: large ones are cut further where they would be too few,
  // down to `least` bytes.
  TileSet blocks(std::int64_t tasks, std::int64_t least) const;
  TileSet blocks(std::int64_t tasks) const;
  void combine(const Rect& block, const Accumulator& left, const Accumulator& right) const {
    kernel->combine({*attrs, dtype, block, left, right});
  }
  void neutral(const Rect& block, const Accumulator& at) const {
    kernel->neutral({*attrs, dtype, block, at});
  }
};

class TreeAccumulator {
 public:
  // Reduces the examples [begin, end) for a block of the state; the result is written to target.
  TreeAccumulator(const TreeReduction& reduction, const TileSet& extent, std::int64_t begin,
                  std::int64_t end, const Accumulator& target, std::byte* partials)
      : reduction_(reduction),
        extent_(extent),
        target_(target),
        partials_(partials),
        cuts_(!reduction.tree.is_leaf({begin, end}) && extent.cuts() > 1),
        position_({begin, end}) {
    if (begin == end) reduction.neutral(extent.block, target);
  }
  // Memory for the states of unfinished subtrees.
  static std::int64_t partial_bytes(const TreeReduction& reduction, const TileSet& extent,
                                    std::int64_t examples);

  // The examples [begin, end) are the next ones; example 0 of the operands, as opened, is number
  // `first`.
  void feed(const void* operands, std::int64_t first, std::int64_t begin, std::int64_t end,
            Scratch& scratch);

 private:
  struct Position {
    explicit Position(TreeRange range) : cursor(range) {}

    ReductionCursor cursor;
    bool inside = false;
    TreeStep step = {};  // where it is inside: a leaf, or a subtree that one piece holds
  };
  struct FeedArgs {
    const void* operands;
    std::int64_t first, begin, end;
    const Rect& block;
    Scratch& scratch;
  };

  void feed_block(const FeedArgs& piece);
  void fold_subtree(const FeedArgs& piece) const;
  // The state at a level of the tree, of a block of the extent.
  Accumulator level(int at, const Rect& block) const {
    const Accumulator state = at == 0 ? target_ : extent_.at(partials_ + (at - 1) * extent_.bytes);
    return extent_.part(state, block);
  }
  void join(int at, const Rect& block) const {
    reduction_.combine(block, level(at, block), level(at + 1, block));
  }

  const TreeReduction& reduction_;
  const TileSet& extent_;
  Accumulator target_;
  std::byte* partials_;
  bool cuts_;  // pieces longer than a leaf are folded block by block
  Position position_;
};

}  // namespace samegrad
