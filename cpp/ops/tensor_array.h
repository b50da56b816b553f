// Indices of array rows, for the ops of tensor_array.cpp and loops that write rows in place.
#pragma once

#include "tensor/array.h"

namespace samegrad {

// One integer; InvalidArgumentError unless it is in [0, rows).
std::int64_t row_at(DType dtype, const void* index, std::int64_t rows);

}  // namespace samegrad
