// Rows that are not in the op table: a state of several buffers whose join is not a addition, and a
// sum with leaves of three.
#pragma once

#include <cstring>

#include "tensor/tree_kernel.h"

namespace samegrad::testing {

// A batch of rows of numbers.
struct Table {
  const double* x;
  std::int64_t columns;
};

// ---- moments of each column: count, mean and sum of squared deviations ----

inline constexpr int kCount = 0, kMean = 1, kDeviations = 2;

inline void moments_leaf(const LeafArgs& args) {
  const Table& table = *static_cast<const Table*>(args.operands);
  const Accumulator& s = args.state;
  for (std::int64_t c = 0; c < args.block.columns; ++c) {
    if (args.first) {
      s.as<std::int64_t>(kCount)[c] = 0;
      s.as<double>(kMean)[c] = s.as<double>(kDeviations)[c] = 0;
    }
    for (std::int64_t i = args.begin; i < args.end; ++i) {
      const double x = table.x[i * table.columns + args.block.column + c];
      const auto n = double(++s.as<std::int64_t>(kCount)[c]);
      const double delta = x - s.as<double>(kMean)[c];
      s.as<double>(kMean)[c] += delta / n;
      s.as<double>(kDeviations)[c] += delta * (x - s.as<double>(kMean)[c]);
    }
  }
}

// Chan, Golub and LeVeque.
inline void moments_combine(const CombineArgs& args) {
  const Accumulator &a = args.left, &b = args.right;
  for (std::int64_t c = 0; c < args.block.columns; ++c) {
    const auto of_a = double(a.as<std::int64_t>(kCount)[c]);
    const auto of_b = double(b.as<std::int64_t>(kCount)[c]);
    const double n = of_a + of_b;
    const double delta = b.as<double>(kMean)[c] - a.as<double>(kMean)[c];
    a.as<std::int64_t>(kCount)[c] += b.as<std::int64_t>(kCount)[c];
    a.as<double>(kMean)[c] += delta * of_b / n;
    a.as<double>(kDeviations)[c] += b.as<double>(kDeviations)[c] + delta * delta * of_a * of_b / n;
  }
}

inline void zeros(const NeutralArgs& args) {
  for (std::size_t i = 0; i < kMaxStateBuffers; ++i) {
    if (args.state.data[i]) std::memset(args.state.data[i], 0, std::size_t(args.block.columns) * 8);
  }
}

inline AccumulatorShape moments_state(std::span<const View>, const Attrs&, const View& result) {
  return {.columns = result.size(), .column_grain = 8, .buffers = 3, .item = {8, 8, 8}};
}

inline const void* open_table(const KernelArgs& args) {
  const View& x = args.in[0];
  return new (args.scratch.take(sizeof(Table)))
      Table{x.as<double>(), x.shape.size(1, x.shape.rank())};
}

// The variance of each column.
inline void moments_finish(const FinishArgs& args) {
  for (std::int64_t c = 0; c < args.shape.columns; ++c) {
    args.out[0].as<double>()[c] =
        args.state.as<double>(kDeviations)[c] / double(args.state.as<std::int64_t>(kCount)[c]);
  }
}

inline constexpr TreeKernel kMoments{.state = moments_state,
                                     .open = open_table,
                                     .leaf = moments_leaf,
                                     .combine = moments_combine,
                                     .neutral = zeros,
                                     .finish = moments_finish};

// ---- sums, of leaves of three ----

inline void sum_leaf(const LeafArgs& args) {
  const Table& table = *static_cast<const Table*>(args.operands);
  for (std::int64_t c = 0; c < args.block.columns; ++c) {
    double& sum = args.state.as<double>()[c];
    for (std::int64_t i = args.begin; i < args.end; ++i) {
      const double x = table.x[i * table.columns + args.block.column + c];
      sum = args.first && i == args.begin ? x : sum + x;
    }
  }
}

inline void sum_combine(const CombineArgs& args) {
  for (std::int64_t c = 0; c < args.block.columns; ++c) {
    args.left.as<double>()[c] += args.right.as<double>()[c];
  }
}

inline AccumulatorShape sum_state(std::span<const View>, const Attrs&, const View& result) {
  return {.columns = result.size(), .column_grain = 1, .item = {8}};
}

inline constexpr TreeKernel kSum{.state = sum_state,
                                 .leaf = sum_leaf,
                                 .combine = sum_combine,
                                 .neutral = zeros,
                                 .leaf_examples = [](const Shape&) { return std::int64_t(3); }};

}  // namespace samegrad::testing
