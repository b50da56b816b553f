// Folds examples into a state in the order of the tree, in whatever pieces they come.
#pragma once

#include <vector>

#include "tensor/tree_kernel.h"

namespace samegrad {

// One reduction: rows of the table that add to the same state (several: at the end of each leaf,
// in this order), and the state.
struct TreeReduction {
  struct Member {
    const TreeKernel* kernel;
    const Attrs* attrs;
  };
  std::vector<Member> members;
  StateShape state;
  std::int64_t leaf = kLeafExamples;
  DType dtype = DType::kFloat32;

  TreeReduction() = default;
  TreeReduction(const TreeKernel& kernel, const Attrs& attrs, std::span<const View> in,
                const View& result);
  // The reduction of several rows whose states are alike; it is cut where each of them may be.
  void add(const TreeReduction& other);

  const TreeKernel& kernel() const { return *members[0].kernel; }
  Block whole() const { return {0, 0, state.rows, state.columns}; }
  // Bytes of a state in one piece of memory, and the state there.
  std::int64_t bytes(const Block& block) const;
  State at(std::byte* memory, const Block& block) const;
  // A block of the state of `extent`.
  State part(const State& state, const Block& extent, const Block& block) const;
  // Blocks of the extent whose states stay in the first cache through all levels of the tree.
  std::vector<Block> blocks(const Block& extent) const;

  void combine(const Block& block, const State& left, const State& right) const;
  void neutral(const Block& block, const State& state) const;
};

class TreeAccumulator {
 public:
  // Of the examples [begin, end), for a block of the state: the result goes to target.
  TreeAccumulator(const TreeReduction& reduction, const Block& extent, std::int64_t begin,
                  std::int64_t end, const State& target, std::byte* partials);
  // Memory for the states of unfinished subtrees.
  static std::int64_t partial_bytes(const TreeReduction& reduction, const Block& extent,
                                    std::int64_t examples);

  // The examples [begin, end) are the next ones. Per member: its operands as opened, of which
  // example 0 is number `first`.
  void feed(std::span<const void* const> operands, std::int64_t first, std::int64_t begin,
            std::int64_t end, Scratch& scratch);

 private:
  struct Range {
    std::int64_t begin, end;
    int joins;  // right halves that are complete when this one is
  };
  struct Cursor {
    std::array<Range, 64> pending;  // the next one last
    int count = 0;
    int depth = 0;  // complete states that wait for their right halves
    bool inside = false;
    Range range = {};  // where it is inside: a leaf, or a subtree that one piece holds
  };
  struct Piece {
    std::span<const void* const> operands;
    std::int64_t first, begin, end;
    const Block& block;
    Scratch& scratch;
  };

  void feed_block(const Piece& piece);
  void enter(std::int64_t end);
  void fold_subtree(const Piece& piece, std::int64_t begin, std::int64_t end, int depth,
                    const State& state);
  void fold(const Piece& piece, std::int64_t begin, std::int64_t end, bool first,
            const State& state);
  void add_members(const Block& block, const State& state);
  void complete(const Block& block, int joins);
  State level(int depth, const Block& block) const;
  State partial(std::int64_t index, const Block& block) const;
  void move_to(const Block& block, State& state) const;

  const TreeReduction& reduction_;
  Block extent_;
  State target_;
  std::byte* partials_;
  std::array<std::int64_t, kMostStateBuffers> buffer_offset_ = {};
  std::int64_t state_bytes_ = 0;
  std::vector<Block> blocks_;  // empty: not cut
  Cursor cursor_;
};

}  // namespace samegrad
