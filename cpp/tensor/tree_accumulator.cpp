#include "tensor/tree_accumulator.h"

#include <algorithm>

#include "base/thresholds.h"
#include "tensor/tree.h"

namespace samegrad {
namespace {

constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// The largest multiple of the grain that fits, at least the grain and at most everything.
std::int64_t cut_at(std::int64_t all, std::int64_t grain, std::int64_t fitting) {
  if (grain == 0) return all;
  return std::min(all, std::max(grain, fitting / grain * grain));
}

std::int64_t parts_of(std::int64_t all, std::int64_t part) {
  return all == 0 ? 0 : (all + part - 1) / part;
}

// The same for parts of nearly equal size.
std::int64_t even_cut(std::int64_t all, std::int64_t grain, std::int64_t fitting) {
  const std::int64_t most = cut_at(all, grain, fitting);
  if (most == all) return all;
  return cut_at(all, grain, parts_of(all, parts_of(all, most)) + grain - 1);
}

}  // namespace

Extent::Extent(const StateShape& shape, const Block& extent)
    : block(extent), item(shape.item), cut_columns_(extent.columns) {
  for (std::size_t i = 0; i < std::size_t(shape.buffers); ++i) {
    offset[i] = bytes;
    bytes += aligned(block.size() * item[i]);
  }
  const std::int64_t element = shape.element_bytes();
  const std::int64_t most = shape.block_bytes ? shape.block_bytes : thresholds().tree_block_bytes;
  if (shape.block_columns) {
    cut_columns_ = even_cut(cut_columns_, shape.column_grain, shape.block_columns);
  }
  const std::int64_t fewest_rows =
      std::max<std::int64_t>(1, cut_at(block.rows, shape.row_grain, 0));
  if (fewest_rows * cut_columns_ * element > most) {
    cut_columns_ = cut_at(cut_columns_, shape.column_grain, most / (fewest_rows * element));
  }
  const std::int64_t row_bytes = std::max<std::int64_t>(1, cut_columns_ * element);
  cut_rows_ = std::max(fewest_rows, cut_at(block.rows, shape.row_grain, most / row_bytes));
  cuts_down_ = parts_of(block.rows, cut_rows_);
  cuts_across_ = parts_of(block.columns, cut_columns_);
}

Block Extent::cut(std::int64_t i) const {
  const std::int64_t row = i / cuts_across_ * cut_rows_, column = i % cuts_across_ * cut_columns_;
  return {block.row + row, block.column + column, std::min(cut_rows_, block.rows - row),
          std::min(cut_columns_, block.columns - column)};
}

TreeReduction::TreeReduction(const TreeKernel& of, const Attrs& its_attrs, std::span<const View> in,
                             const View& result)
    : kernel(&of),
      attrs(&its_attrs),
      state(of.state(in, its_attrs, result)),
      whole(state, {0, 0, state.rows, state.columns}),
      dtype(result.dtype) {
  if (of.leaf_examples) leaf = of.leaf_examples(result.shape);
}

Extent TreeReduction::blocks(std::int64_t tasks) const {
  StateShape shape = state;
  const std::int64_t most = shape.block_bytes, least = thresholds().tree_block_bytes;
  if (most > least) shape.block_bytes = std::clamp(whole.bytes / tasks, least, most);
  return {shape, whole.block};
}

std::int64_t TreeAccumulator::partial_bytes(const TreeReduction& reduction, const Extent& extent,
                                            std::int64_t examples) {
  return (tree_levels(examples, reduction.leaf) - 1) * extent.bytes;
}

void TreeAccumulator::feed(const void* operands, std::int64_t first, std::int64_t begin,
                           std::int64_t end, Scratch& scratch) {
  if (begin == end) return;
  // One leaf goes through the whole state in any case.
  if (!cuts_ || end - begin <= reduction_.leaf) {
    feed_block({operands, first, begin, end, extent_.block, scratch});
    return;
  }
  const Cursor start = cursor_;
  for (std::int64_t i = 0; i < extent_.cuts(); ++i) {
    cursor_ = start;
    feed_block({operands, first, begin, end, extent_.cut(i), scratch});
  }
}

void TreeAccumulator::feed_block(const Piece& piece) {
  for (std::int64_t at = piece.begin; at < piece.end;) {
    if (!cursor_.inside) enter(piece.end);
    const Range range = cursor_.range;
    const std::int64_t stop = std::min(range.end, piece.end);
    const State state = level(cursor_.depth, piece.block);
    if (at == range.begin && range.end <= piece.end) {
      fold_subtree(piece, range.begin, range.end, cursor_.depth, state);
    } else {
      reduction_.kernel->leaf({piece.operands, at - piece.first, stop - piece.first, piece.block,
                               state, at == range.begin, piece.scratch});
    }
    at = stop;
    if (at == range.end) complete(piece.block, range.joins);
  }
}

// Examples that the piece holds all of.
void TreeAccumulator::fold_subtree(const Piece& piece, std::int64_t begin, std::int64_t end,
                                   int depth, const State& state) const {
  const bool at_once = reduction_.state.subtrees;
  if (at_once || end - begin <= reduction_.leaf) {
    const auto fold = at_once ? reduction_.kernel->subtree : reduction_.kernel->leaf;
    return fold({piece.operands, begin - piece.first, end - piece.first, piece.block, state, true,
                 piece.scratch});
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

void TreeAccumulator::complete(const Block& block, int joins) {
  cursor_.inside = false;
  ++cursor_.depth;
  for (; joins > 0; --joins) {
    --cursor_.depth;
    reduction_.combine(block, level(cursor_.depth - 1, block), level(cursor_.depth, block));
  }
}

}  // namespace samegrad
