#include "ops/example_reduction.h"

#include <algorithm>

namespace samegrad {

ExampleReduction::ExampleReduction(ReduceFn fn, DType dtype, std::int64_t rows,
                                   std::int64_t columns, Scratch& scratch)
    : reduce_(kernels().column_reduce(fn, dtype)),
      fold_(kernels().column_fold(fn, dtype)),
      rows_(rows),
      columns_(columns),
      row_bytes_(columns * std::int64_t(size_of(dtype))) {
  const auto blocks = std::max<std::size_t>(1, std::size_t(kColumnTree.units(rows)));
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

void ExampleReduction::fold(const std::byte* x, std::int64_t first, std::int64_t rows,
                            std::byte* y) const {
  const TreeStep& block = blocks_[first / kColumnBlock];
  std::byte* sum = level(block.level, y);
  if (first == block.range.begin) {
    reduce_(x, sum, rows, columns_, columns_, false);
  } else {
    fold_(x, sum, rows, columns_);
  }
  if (first + rows != block.range.end) return;
  for (int k = 0; k < block.joins; ++k) {
    fold_(level(block.level - k, y), level(block.level - k - 1, y), 1, columns_);
  }
}

}  // namespace samegrad
