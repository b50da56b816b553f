// Moving one axis past another in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samegrad {

// y[j][i][…] = x[i][j][…] for x of shape (a, b, c) with elements of item bytes.
void swap_axes(const void* x, std::int64_t a, std::int64_t b, std::int64_t c, std::size_t item,
               void* y);

}  // namespace samegrad
