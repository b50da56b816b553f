// Helpers that the expansions of kernels/unary.def and kernels/binary.def share.
#pragma once

#include "ops/expr.h"
#include "ops/partition.h"
#include "ops/rules.h"

namespace samegrad {

enum class ResultKind { kSame, kBoolResult };
inline constexpr ResultKind kSame = ResultKind::kSame;
inline constexpr ResultKind kBoolResult = ResultKind::kBoolResult;

// The generated tests draw floats where an op takes them; other ops name their dtype.
constexpr DType sample_dtype(DTypes dtypes) {
  if (dtypes & kFloats) return DType::kFloat32;
  return dtypes & kInts ? DType::kInt32 : DType::kBool;
}

inline Sample elementwise_sample(std::vector<std::vector<std::int64_t>> shapes, DTypes dtypes,
                                 double low, double high, std::vector<std::uint8_t> batched) {
  Sample sample;
  if (!(dtypes & kFloats)) sample.dtypes.assign(shapes.size(), sample_dtype(dtypes));
  if (dtypes & kFloats) {
    sample.low = low;
    sample.high = high;
  }
  sample.integer_high = dtypes & kNumbers ? high + 1 : 2;
  sample.shapes = std::move(shapes);
  sample.batched = std::move(batched);
  return sample;
}

}  // namespace samegrad
