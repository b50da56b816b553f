// Helpers of the ops that are tree reductions.
#pragma once

#include <algorithm>

#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "tensor/tree_kernel.h"

namespace samegrad {

// The result itself, as one row that is not cut.
inline AccumulatorShape state_of_result(const View& result) {
  return {.columns = result.size(), .item = {std::int64_t(size_of(result.dtype))}};
}

// left = f(left, right) for the elements of the block.
inline void join_elements(BinaryFn fn, DType dtype, const Rect& block, const Accumulator& left,
                          const Accumulator& right) {
  const BinaryKernel join = kernels().binary(fn, dtype);
  if (block.rows == 1 || (left.stride == block.columns && right.stride == block.columns)) {
    join(left.data[0], right.data[0], left.data[0], block.size(), 1, 1);
    return;
  }
  const auto item = std::int64_t(size_of(dtype));
  for (std::int64_t r = 0; r < block.rows; ++r) {
    std::byte* to = left.data[0] + r * left.stride * item;
    join(to, right.data[0] + r * right.stride * item, to, block.columns, 1, 1);
  }
}

template <BinaryFn kFn>
void combine_elements(const CombineArgs& args) {
  join_elements(kFn, args.dtype, args.block, args.left, args.right);
}

// The examples of a call by subtrees of at most `most` (or of a leaf): fold(range, state) makes the
// state of one.
template <class Fold>
void fold_subtrees(const LeafArgs& args, std::int64_t most, const Rect& block,
                   const Accumulator& state, DType dtype, const Fold& fold) {
  const Halving<> tree{std::max(most, kLeafExamples)};
  const TreeRange all{args.begin, args.end};
  if (tree.is_leaf(all)) return fold(all, state);
  const Scratch::Frame frame(args.scratch);
  const std::int64_t bytes = aligned(block.size() * std::int64_t(size_of(dtype)));
  const std::int64_t others = tree.levels(all.size()) - 1;
  auto* memory = static_cast<std::byte*>(args.scratch.take(std::size_t(others * bytes)));
  const auto at = [&](int level) {
    return level == 0 ? state : Accumulator{{memory + (level - 1) * bytes}, block.columns};
  };
  walk_tree(
      tree, all, [&](TreeRange range, int level) { fold(range, at(level)); },
      [&](int level) { join_elements(BinaryFn::k_add, dtype, block, at(level), at(level + 1)); });
}

void neutral_zeros(const NeutralArgs& args);

}  // namespace samegrad
