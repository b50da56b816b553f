#include "ops/example_reduction.h"

#include <algorithm>
#include <cstring>

namespace samegrad {

ExampleReduction::ExampleReduction(ReduceFn fn, DType dtype, std::int64_t rows,
                                   std::int64_t columns, bool keeps_blocks, Scratch& scratch)
    : reduce_(kernels().column_reduce(fn, dtype)),
      fold_(kernels().column_fold(fn, dtype)),
      rows_(rows),
      columns_(columns),
      row_bytes_(columns * std::int64_t(size_of(dtype))),
      keeps_blocks_(keeps_blocks) {
  const auto blocks = std::size_t(rows_of_result(rows, true));
  blocks_ = static_cast<TreeStep*>(scratch.take(blocks * sizeof(TreeStep)));
  const int levels = kColumnTree.levels(rows);
  levels_ = static_cast<std::byte*>(scratch.take(std::size_t((levels - 1) * row_bytes_)));
  TreeStep* block = blocks_;
  for_each_leaf(kColumnTree, {0, rows},
                [&](const TreeStep& step) { new (block++) TreeStep(step); });
}

std::int64_t ExampleReduction::rows_at_once(std::int64_t rows, std::int64_t first,
                                            std::int64_t most) {
  const std::int64_t of_block = kColumnBlock - first % kColumnBlock;
  return std::min({most, rows - first, of_block});
}

std::int64_t ExampleReduction::rows_of_result(std::int64_t rows, bool keeps_blocks) {
  return keeps_blocks ? std::max<std::int64_t>(1, kColumnTree.units(rows)) : 1;
}

void ExampleReduction::fold(const std::byte* x, std::int64_t first, std::int64_t rows,
                            std::byte* y) const {
  const std::int64_t index = first / kColumnBlock;
  const TreeStep& block = blocks_[index];
  std::byte* sum = keeps_blocks_ ? y + index * row_bytes_ : level(block.level, y);
  if (first == block.range.begin) {
    reduce_(x, sum, rows, columns_, columns_, false);
  } else {
    fold_(x, sum, rows, columns_);
  }
  if (first + rows == block.range.end && !keeps_blocks_) join_above(block, y);
}

void ExampleReduction::join_above(const TreeStep& block, std::byte* y) const {
  for (int k = 0; k < block.joins; ++k) {
    fold_(level(block.level - k, y), level(block.level - k - 1, y), 1, columns_);
  }
}

void ExampleReduction::join(const std::byte* blocks, std::byte* y) const {
  const std::int64_t count = rows_of_result(rows_, true);
  for (std::int64_t i = 0; i < count; ++i, blocks += row_bytes_) {
    std::memcpy(level(blocks_[i].level, y), blocks, std::size_t(row_bytes_));
    join_above(blocks_[i], y);
  }
}

}  // namespace samegrad
