// Helpers of the ops that are tree reductions.
#pragma once

#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "tensor/tree.h"
#include "tensor/tree_kernel.h"

namespace samegrad {

// The result itself, as one row that is not cut.
inline StateShape state_of_result(const View& result) {
  return {.columns = result.size(), .item = {std::int64_t(size_of(result.dtype))}};
}

// left = f(left, right) for the elements of the block.
inline void join_elements(BinaryFn fn, DType dtype, const Block& block, const State& left,
                          const State& right) {
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

// A range of examples from its halves: fold(begin, end, state) makes the state of one.
template <class Fold>
void fold_halves(const LeafArgs& args, const Block& block, const State& left, DType dtype,
                 const Fold& fold) {
  const Scratch::Frame frame(args.scratch);
  const std::size_t bytes = std::size_t(block.size()) * size_of(dtype);
  const State right{{static_cast<std::byte*>(args.scratch.take(bytes))}, block.columns};
  const std::int64_t middle = args.begin + tree_split(args.end - args.begin);
  fold(args.begin, middle, left);
  fold(middle, args.end, right);
  join_elements(BinaryFn::k_add, dtype, block, left, right);
}

void neutral_zeros(const NeutralArgs& args);

}  // namespace samegrad
