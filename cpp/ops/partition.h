// Parallel partitions of kernels: the units of work that threads may divide (ParallelPartition in
// ir/op_def.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "ir/op_def.h"

namespace samegrad {

inline CostArgs cost_args(const KernelArgs& args) {
  return {args.attrs, args.in, args.out};
}

// The op's kernel is all of its parts: run(args, begin, end) for the count(cost_args(args)) there
// are.
template <auto kCount, auto kRun>
void set_parts(OpDef& op) {
  op.parts.count = kCount;
  op.parts.run = kRun;
  op.kernel = [](const KernelArgs& args) { kRun(args, 0, kCount(cost_args(args))); };
}

// OpDef::scratch_bytes of a kernel that takes none.
inline std::size_t no_scratch(const CostArgs&) {
  return 0;
}

// One unit for each element of the result.
inline std::int64_t elements_of_result(const CostArgs& args) {
  return args.out[0].size();
}
// One unit for each row (of axis 0) of the result.
inline std::int64_t rows_of_result(const CostArgs& args) {
  return args.out[0].shape.rank() > 0 ? args.out[0].shape[0] : 1;
}

// Elements [begin, end) of a view, as one line.
View elements_of(const View& view, std::int64_t begin, std::int64_t end);
// Rows [begin, end) of axis 0.
View rows_of(const View& view, std::int64_t begin, std::int64_t end);

// ---- kernels that are called with views of parts ----

// By elements where all operands are alike or are numbers, else by rows of the first axis that has
// several; 1: neither.
std::int64_t count_of_elementwise(const CostArgs& args);
// Calls the kernel with the units [begin, end) of so many.
void run_on_views(Kernel kernel, const KernelArgs& args, std::int64_t count, std::int64_t begin,
                  std::int64_t end);

template <Kernel kKernel, auto kCount>
void set_view_parts(OpDef& op) {
  op.kernel = kKernel;
  op.parts.count = kCount;
  op.parts.run = [](const KernelArgs& args, std::int64_t begin, std::int64_t end) {
    run_on_views(kKernel, args, kCount(cost_args(args)), begin, end);
  };
}

// ---- lines x[outer][n][columns], one unit for each of the outer × columns ----

struct Lines {
  std::int64_t outer = 1, n = 1, columns = 1;

  Lines() = default;
  Lines(const Shape& shape, int axis)
      : outer(shape.size(0, axis)), n(shape[axis]), columns(shape.size(axis + 1, shape.rank())) {}

  std::int64_t count() const { return outer * columns; }

  // Calls f(first outer, how many, first column, how many) for rectangles that are [begin, end).
  template <class F>
  void for_each(std::int64_t begin, std::int64_t end, const F& f) const {
    while (begin < end) {
      const std::int64_t o = begin / columns, column = begin % columns;
      const std::int64_t whole = column == 0 ? (end - begin) / columns : 0;
      if (whole > 0) {
        f(o, whole, std::int64_t(0), columns);
        begin += whole * columns;
      } else {
        const std::int64_t some = std::min(columns - column, end - begin);
        f(o, std::int64_t(1), column, some);
        begin += some;
      }
    }
  }
};

// The number of levels by which the length of lines is divided, into 2^levels pieces. Zero where
// the lines, or their columns, are enough to partition.
int levels_of(const Lines& lines, std::int64_t blocks);

}  // namespace samegrad
