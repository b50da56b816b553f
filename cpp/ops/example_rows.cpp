#include "ops/example_rows.h"

#include <algorithm>

#include "base/order.h"
#include "tensor/tree.h"

namespace samegrad {

ExampleRows::ExampleRows(ReduceFn fn, DType dtype, std::int64_t rows, std::int64_t columns,
                         Scratch& scratch)
    : reduce_(kernels().column_reduce(fn, dtype)),
      fold_(kernels().column_fold(fn, dtype)),
      rows_(rows),
      columns_(columns),
      row_bytes_(columns * std::int64_t(size_of(dtype))) {
  const std::int64_t blocks = (rows + kColumnBlock - 1) / kColumnBlock;
  blocks_ = static_cast<Block*>(scratch.take(std::size_t(blocks) * sizeof(Block)));
  const int levels = tree_levels(blocks, 1);
  levels_ = static_cast<std::byte*>(scratch.take(std::size_t((levels - 1) * row_bytes_)));
  Block* last = nullptr;
  walk_tree(
      0, blocks, 1, 0,
      [&](std::int64_t block, std::int64_t, int level) {
        last = new (blocks_ + block) Block{level, 0};
      },
      [&](int) { ++last->joins; });
}

std::int64_t ExampleRows::rows_at_once(std::int64_t rows, std::int64_t first, std::int64_t most) {
  const std::int64_t of_block = kColumnBlock - first % kColumnBlock;
  return std::min({most, rows - first, of_block});
}

void ExampleRows::fold(const std::byte* x, std::int64_t first, std::int64_t rows,
                       std::byte* y) const {
  const Block& block = blocks_[first / kColumnBlock];
  std::byte* sum = level(block.level, y);
  if (first % kColumnBlock == 0) {
    reduce_(x, sum, rows, columns_, columns_, false);
  } else {
    fold_(x, sum, rows, columns_);
  }
  const std::int64_t end = first + rows;
  if (end % kColumnBlock != 0 && end != rows_) return;
  for (int k = 0; k < block.joins; ++k) {
    fold_(level(block.level - k, y), level(block.level - k - 1, y), 1, columns_);
  }
}

}  // namespace samegrad
