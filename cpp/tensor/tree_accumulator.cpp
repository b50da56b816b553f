#include "tensor/tree_accumulator.h"

#include <algorithm>
#include <numeric>

#include "base/thresholds.h"
#include "tensor/tree.h"

namespace samegrad {
namespace {

constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// The largest multiple of the grain that fits, at least the grain and at most everything.
std::int64_t cut(std::int64_t all, std::int64_t grain, std::int64_t fitting) {
  if (grain == 0) return all;
  return std::min(all, std::max(grain, fitting / grain * grain));
}

// 0: nowhere.
std::int64_t common_grain(std::int64_t a, std::int64_t b) {
  return a == 0 || b == 0 ? 0 : std::lcm(a, b);
}

}  // namespace

TreeReduction::TreeReduction(const TreeKernel& kernel, const Attrs& attrs, std::span<const View> in,
                             const View& result)
    : members{{&kernel, &attrs}}, state(kernel.state(in, attrs, result)), dtype(result.dtype) {
  if (kernel.leaf_examples) leaf = kernel.leaf_examples(result.shape);
}

void TreeReduction::add(const TreeReduction& other) {
  members.insert(members.end(), other.members.begin(), other.members.end());
  state.row_grain = common_grain(state.row_grain, other.state.row_grain);
  state.column_grain = common_grain(state.column_grain, other.state.column_grain);
}

std::int64_t TreeReduction::bytes(const Block& block) const {
  std::int64_t sum = 0;
  for (int i = 0; i < state.buffers; ++i) sum += aligned(block.size() * state.item[std::size_t(i)]);
  return sum;
}

State TreeReduction::at(std::byte* memory, const Block& block) const {
  State result{{}, block.columns};
  for (std::size_t i = 0; i < std::size_t(state.buffers); ++i) {
    result.data[i] = memory;
    memory += aligned(block.size() * state.item[i]);
  }
  return result;
}

State TreeReduction::part(const State& whole, const Block& extent, const Block& block) const {
  State result{{}, whole.stride};
  const std::int64_t first = (block.row - extent.row) * whole.stride + block.column - extent.column;
  for (std::size_t i = 0; i < std::size_t(state.buffers); ++i) {
    result.data[i] = whole.data[i] + first * state.item[i];
  }
  return result;
}

std::vector<Block> TreeReduction::blocks(const Block& extent) const {
  const std::int64_t item = state.element_bytes();
  const std::int64_t fewest_rows = std::max<std::int64_t>(1, cut(extent.rows, state.row_grain, 0));
  std::int64_t columns = extent.columns;
  if (fewest_rows * columns * item > thresholds().tree_block_bytes) {
    columns =
        cut(columns, state.column_grain, thresholds().tree_block_bytes / (fewest_rows * item));
  }
  const std::int64_t row_bytes = std::max<std::int64_t>(1, columns * item);
  const std::int64_t rows =
      cut(extent.rows, state.row_grain, thresholds().tree_block_bytes / row_bytes);
  std::vector<Block> result;
  for (std::int64_t row = 0; row < extent.rows; row += rows) {
    for (std::int64_t column = 0; column < extent.columns; column += columns) {
      result.push_back({extent.row + row, extent.column + column, std::min(rows, extent.rows - row),
                        std::min(columns, extent.columns - column)});
    }
  }
  return result;
}

void TreeReduction::combine(const Block& block, const State& left, const State& right) const {
  kernel().combine({*members[0].attrs, dtype, block, left, right});
}

void TreeReduction::neutral(const Block& block, const State& state) const {
  kernel().neutral({*members[0].attrs, dtype, block, state});
}

TreeAccumulator::TreeAccumulator(const TreeReduction& reduction, const Block& extent,
                                 std::int64_t begin, std::int64_t end, const State& target,
                                 std::byte* partials)
    : reduction_(reduction), extent_(extent), target_(target), partials_(partials) {
  for (std::size_t i = 0; i < std::size_t(reduction.state.buffers); ++i) {
    buffer_offset_[i] = state_bytes_;
    state_bytes_ += aligned(extent.size() * reduction.state.item[i]);
  }
  if (begin == end) {
    reduction.neutral(extent, target);
    return;
  }
  cursor_.pending[0] = {begin, end, 0};
  cursor_.count = 1;
  const bool cuts = end - begin > reduction.leaf && state_bytes_ > thresholds().tree_block_bytes;
  if (cuts) blocks_ = reduction.blocks(extent);
}

std::int64_t TreeAccumulator::partial_bytes(const TreeReduction& reduction, const Block& extent,
                                            std::int64_t examples) {
  const std::int64_t levels = tree_levels(examples, reduction.leaf) - 1;
  const std::int64_t states = levels + std::int64_t(reduction.members.size()) - 1;
  return states * reduction.bytes(extent);
}

// The states of a leaf's further members lie before those of the levels.
State TreeAccumulator::level(int depth, const Block& block) const {
  if (depth > 0) return partial(std::int64_t(reduction_.members.size()) - 2 + depth, block);
  State state = target_;
  move_to(block, state);
  return state;
}

State TreeAccumulator::partial(std::int64_t index, const Block& block) const {
  State state{{}, extent_.columns};
  std::byte* memory = partials_ + index * state_bytes_;
  for (std::size_t i = 0; i < std::size_t(reduction_.state.buffers); ++i) {
    state.data[i] = memory + buffer_offset_[i];
  }
  move_to(block, state);
  return state;
}

// From the start of the extent to a block of it.
void TreeAccumulator::move_to(const Block& block, State& state) const {
  const std::int64_t first =
      (block.row - extent_.row) * state.stride + block.column - extent_.column;
  if (first == 0) return;
  for (std::size_t i = 0; i < std::size_t(reduction_.state.buffers); ++i) {
    state.data[i] += first * reduction_.state.item[i];
  }
}

void TreeAccumulator::feed(std::span<const void* const> operands, std::int64_t first,
                           std::int64_t begin, std::int64_t end, Scratch& scratch) {
  if (begin == end) return;
  // One leaf goes through the whole state in any case.
  if (blocks_.empty() || end - begin <= reduction_.leaf) {
    feed_block({operands, first, begin, end, extent_, scratch});
    return;
  }
  const Cursor start = cursor_;
  for (const Block& block : blocks_) {
    cursor_ = start;
    feed_block({operands, first, begin, end, block, scratch});
  }
}

void TreeAccumulator::feed_block(const Piece& piece) {
  for (std::int64_t at = piece.begin; at < piece.end;) {
    if (!cursor_.inside) enter(piece.end);
    const Range range = cursor_.range;
    const State state = level(cursor_.depth, piece.block);
    if (at == range.begin && range.end <= piece.end) {
      fold_subtree(piece, range.begin, range.end, cursor_.depth, state);
    } else {
      fold(piece, at, std::min(range.end, piece.end), at == range.begin, state);
      if (range.end <= piece.end) add_members(piece.block, state);
    }
    at = std::min(range.end, piece.end);
    if (at == range.end) complete(piece.block, range.joins);
  }
}

// Examples that the piece holds all of.
void TreeAccumulator::fold_subtree(const Piece& piece, std::int64_t begin, std::int64_t end,
                                   int depth, const State& state) {
  if (reduction_.state.subtrees && reduction_.members.size() == 1) {
    return reduction_.kernel().subtree({piece.operands[0], begin - piece.first, end - piece.first,
                                        piece.block, state, true, piece.scratch});
  }
  if (end - begin <= reduction_.leaf) {
    fold(piece, begin, end, true, state);
    return add_members(piece.block, state);
  }
  const std::int64_t middle = begin + tree_split(end - begin);
  fold_subtree(piece, begin, middle, depth, state);
  const State right = level(depth + 1, piece.block);
  fold_subtree(piece, middle, end, depth + 1, right);
  reduction_.combine(piece.block, state, right);
}

// Goes to the largest subtree that begins here and ends at `end` or before, else to the next leaf.
void TreeAccumulator::enter(std::int64_t end) {
  Range range = cursor_.pending[std::size_t(--cursor_.count)];
  while (range.end - range.begin > reduction_.leaf && range.end > end) {
    const std::int64_t middle = range.begin + tree_split(range.end - range.begin);
    cursor_.pending[std::size_t(cursor_.count++)] = {middle, range.end, range.joins + 1};
    range = {range.begin, middle, 0};
  }
  cursor_.range = range;
  cursor_.inside = true;
}

// Examples of one leaf.
void TreeAccumulator::fold(const Piece& piece, std::int64_t begin, std::int64_t end, bool first,
                           const State& state) {
  begin -= piece.first, end -= piece.first;
  reduction_.kernel().leaf(
      {piece.operands[0], begin, end, piece.block, state, first, piece.scratch});
  for (std::size_t m = 1; m < reduction_.members.size(); ++m) {
    const State own = partial(std::int64_t(m) - 1, piece.block);
    reduction_.members[m].kernel->leaf(
        {piece.operands[m], begin, end, piece.block, own, first, piece.scratch});
  }
}

void TreeAccumulator::add_members(const Block& block, const State& state) {
  for (std::size_t m = 1; m < reduction_.members.size(); ++m) {
    reduction_.combine(block, state, partial(std::int64_t(m) - 1, block));
  }
}

void TreeAccumulator::complete(const Block& block, int joins) {
  cursor_.inside = false;
  ++cursor_.depth;
  for (; joins > 0; --joins) {
    --cursor_.depth;
    reduction_.combine(block, level(cursor_.depth - 1, block), level(cursor_.depth, block));
  }
}

}  // namespace samegrad
