// Samples for the generated tests of operations that take indices.
#pragma once

#include <utility>
#include <vector>

#include "ir/op_def.h"

namespace samegrad {

// The dtypes of a value and its indices, and those followed by a second value.
inline const std::vector<DType> kIndexed{DType::kFloat32, DType::kInt64};
inline const std::vector<DType> kSegments{DType::kFloat32, DType::kInt64, DType::kFloat32};

// A sample whose indices are below `high`.
inline Sample indexed_sample(std::vector<std::vector<std::int64_t>> shapes, Attrs attrs,
                             std::vector<DType> dtypes, std::vector<std::uint8_t> batched = {},
                             double high = 3) {
  return {.shapes = std::move(shapes),
          .attrs = std::move(attrs),
          .dtypes = std::move(dtypes),
          .batched = std::move(batched),
          .integer_high = high};
}

}  // namespace samegrad
