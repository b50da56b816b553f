// The rows of a segment_sum that its examples name, each by itself.
#include "base/dtype.h"
#include "ops/index_kernel.h"
#include "ops/segment_sum.h"

namespace samegrad {
namespace {

// Rows of the indices are those of their examples, or, without any, of their first axis.
std::int64_t examples_of(const KernelArgs& args) {
  const View& indices = args.in[1];
  if (indices.example_axis >= 0) return args.examples;
  return indices.shape.rank() > 0 ? indices.shape[0] : 1;
}

bool applies(std::span<const View> in, const Attrs& attrs) {
  return in[1].example_axis <= 0 && axis_along(attrs, in[2].shape) == 0;
}

std::int64_t places_of(std::span<const View> in) {
  return in[1].size();
}

void name_rows(const KernelArgs& args, std::int64_t first, TouchedRow* to) {
  const View& indices = args.in[1];
  const std::int64_t count = indices.size(), size = args.out[0].shape[0];
  visit<kIndices>("segment_sum", indices.dtype, [&]<class I>() {
    for (std::int64_t k = 0; k < count; ++k) {
      to[k] = {index_at<I>("segment_sum", args, indices, k, size), first + k};
    }
  });
}

void sum_row(const SparseSum& row) {
  const KernelArgs& args = row.args;
  const std::int64_t examples = examples_of(args), count = args.in[1].size();
  const Shape& shape = args.out[0].shape;
  const std::int64_t width = shape.size(1, shape.rank());
  visit<kNumbers & kComputed>("segment_sum", args.out[0].dtype, [&]<class T>() {
    const SegmentSum<T> sum{SegmentPositions(count / examples, row.first), args.in[0].as<T>(),
                            count, shape[0], width};
    const std::int64_t end = row.end_example < 0 ? examples : row.end_example;
    sum.sum(row.first_example, end, {row.begin, row.end}, reinterpret_cast<T*>(row.to),
            args.scratch);
  });
}

// A row for each level of the tree over the examples and of that over the places of one.
std::size_t sum_bytes(const KernelArgs& args) {
  const Shape& shape = args.out[0].shape;
  const std::size_t width = std::size_t(shape.size(1, shape.rank())) * size_of(args.out[0].dtype);
  const std::int64_t examples = examples_of(args);
  const std::int64_t places = examples ? args.in[1].size() / examples : 0;
  const int rows = kExampleTree.levels(examples) + kIndexTree.levels(places) + 1;
  return std::size_t(rows) * (width + kAlignment);
}

}  // namespace

const SparseTree& segment_rows() {
  static constexpr SparseTree rows{applies, places_of, name_rows, sum_row, sum_bytes};
  return rows;
}

void nonzero_rows_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const std::int64_t rows = x.shape.rank() > 0 ? x.shape[0] : 1;
  const std::int64_t width = rows ? x.size() / rows : 0;
  bool* y = args.out[0].as<bool>();
  visit(x.dtype, [&]<class T>() {
    const T* row = x.as<T>();
    for (std::int64_t r = 0; r < rows; ++r, row += width, y += width) {
      bool any = false;
      for (std::int64_t j = 0; j < width; ++j) any |= row[j] != T(0);
      std::fill_n(y, width, any);
    }
  });
}

}  // namespace samegrad
