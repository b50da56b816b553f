#include "tensor/tree_accumulator.h"

#include <algorithm>

#include "base/rounding.h"
#include "base/thresholds.h"

namespace samegrad {
namespace {

// The largest multiple of the grain that fits, at least the grain and at most everything.
std::int64_t cut_at(std::int64_t all, std::int64_t grain, std::int64_t fitting) {
  if (grain == 0) return all;
  return std::min(all, std::max(grain, fitting / grain * grain));
}

std::int64_t parts_of(std::int64_t all, std::int64_t part) {
  return all == 0 ? 0 : divide_up(all, part);
}

// The size of parts of nearly equal size, at most that of cut_at().
std::int64_t even_cut(std::int64_t all, std::int64_t grain, std::int64_t fitting) {
  const std::int64_t most = cut_at(all, grain, fitting);
  if (most == all) return all;
  return cut_at(all, grain, parts_of(all, parts_of(all, most)) + grain - 1);
}

}  // namespace

TileSet::TileSet(const AccumulatorShape& shape, const Rect& extent)
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

Rect TileSet::cut(std::int64_t i) const {
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
  if (of.leaf_examples) tree.leaf = of.leaf_examples(result.shape);
}

TileSet TreeReduction::blocks(std::int64_t tasks) const {
  return blocks(tasks, thresholds().tree_block_bytes);
}

TileSet TreeReduction::blocks(std::int64_t tasks, std::int64_t least) const {
  AccumulatorShape shape = state;
  const std::int64_t most = shape.block_bytes;
  if (most > least) shape.block_bytes = std::clamp(whole.bytes / tasks, least, most);
  return {shape, whole.block};
}

std::int64_t TreeAccumulator::partial_bytes(const TreeReduction& reduction, const TileSet& extent,
                                            std::int64_t examples) {
  return (reduction.tree.levels(examples) - 1) * extent.bytes;
}

void TreeAccumulator::feed(const void* operands, std::int64_t first, std::int64_t begin,
                           std::int64_t end, Scratch& scratch) {
  if (begin == end) return;
  // One leaf goes through the whole state in any case.
  if (!cuts_ || reduction_.tree.is_leaf({begin, end})) {
    feed_block({operands, first, begin, end, extent_.block, scratch});
    return;
  }
  const Position start = position_;
  for (std::int64_t i = 0; i < extent_.cuts(); ++i) {
    position_ = start;
    feed_block({operands, first, begin, end, extent_.cut(i), scratch});
  }
}

void TreeAccumulator::feed_block(const FeedArgs& piece) {
  for (std::int64_t at = piece.begin; at < piece.end;) {
    if (!position_.inside) position_.step = position_.cursor.next(reduction_.tree, piece.end);
    const auto [range, own_level, joins] = position_.step;
    const std::int64_t stop = std::min(range.end, piece.end);
    if (at == range.begin && range.end <= piece.end) {
      fold_subtree(piece);
    } else {
      reduction_.kernel->leaf({piece.operands, at - piece.first, stop - piece.first, piece.block,
                               level(own_level, piece.block), at == range.begin, piece.scratch});
    }
    at = stop;
    position_.inside = at < range.end;
    if (position_.inside) return;
    for (int join_at = own_level - 1; join_at >= own_level - joins; --join_at) {
      join(join_at, piece.block);
    }
  }
}

// Examples that the piece holds all of.
void TreeAccumulator::fold_subtree(const FeedArgs& piece) const {
  const bool at_once = reduction_.state.subtrees;
  const auto fold = at_once ? reduction_.kernel->subtree : reduction_.kernel->leaf;
  const int root = position_.step.level;
  const auto fold_at = [&](TreeRange range, int at) {
    fold({piece.operands, range.begin - piece.first, range.end - piece.first, piece.block,
          level(root + at, piece.block), true, piece.scratch});
  };
  if (at_once) return fold_at(position_.step.range, 0);
  walk_tree(reduction_.tree, position_.step.range, fold_at,
            [&](int at) { join(root + at, piece.block); });
}

}  // namespace samegrad
