// Reduction of each example's rows to one row, while a fused loop has them in cache.
#pragma once

#include "base/reduction_order.h"
#include "kernels/table.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// Sums in the order of a column reduction (kernels/table.h), for any number of rows at a time.
class ExampleReduction {
 public:
  // Reduces examples of `rows` rows each, one or more; memory is taken from the scratch. Threads
  // that share an example keep the sums of its blocks for join().
  ExampleReduction(ReduceFn fn, DType dtype, std::int64_t rows, std::int64_t columns,
                   bool keeps_blocks, Scratch& scratch);

  // The number of rows, at most `most`, that one call may fold after `first` rows.
  static std::int64_t rows_at_once(std::int64_t rows, std::int64_t first, std::int64_t most);
  // The rows that an example has in the memory of its result, or of its blocks.
  static std::int64_t rows_of_result(std::int64_t rows, bool keeps_blocks);
  // Folds the rows [first, first + rows) of an example, in order; y is its result, or the sums of
  // its blocks.
  void fold(const std::byte* x, std::int64_t first, std::int64_t rows, std::byte* y) const;
  // Joins the sums of an example's blocks; y is its result.
  void join(const std::byte* blocks, std::byte* y) const;

 private:
  std::byte* level(int at, std::byte* y) const {
    return at == 0 ? y : levels_ + (at - 1) * row_bytes_;
  }
  void join_above(const TreeStep& block, std::byte* y) const;

  ColumnReduceKernel reduce_;
  ColumnFoldKernel fold_;
  std::int64_t rows_, columns_, row_bytes_;
  bool keeps_blocks_;
  TreeStep* blocks_;
  std::byte* levels_;
};

}  // namespace samegrad
