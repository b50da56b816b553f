// Reduction of each example's rows to one row, while a fused loop has them in cache.
#pragma once

#include "base/reduction_order.h"
#include "kernels/table.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// Sums in the order of a column reduction (kernels/table.h), for any number of rows at a time.
class ExampleReduction {
 public:
  // Reduces examples of `rows` rows each, one or more; memory is taken from the scratch.
  ExampleReduction(ReduceFn fn, DType dtype, std::int64_t rows, std::int64_t columns,
                   Scratch& scratch);

  // The number of rows, at most `most`, that one call may fold after `first` rows.
  static std::int64_t rows_at_once(std::int64_t rows, std::int64_t first, std::int64_t most);
  // Folds the rows [first, first + rows) of an example, in order; y is its result.
  void fold(const std::byte* x, std::int64_t first, std::int64_t rows, std::byte* y) const;

 private:
  std::byte* level(int at, std::byte* y) const {
    return at == 0 ? y : levels_ + (at - 1) * row_bytes_;
  }

  ColumnReduceKernel reduce_;
  ColumnFoldKernel fold_;
  std::int64_t rows_, columns_, row_bytes_;
  TreeStep* blocks_;
  std::byte* levels_;
};

}  // namespace samegrad
