// Divides a block of a matrix into contiguous pieces of elements of the matrix and of the block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/world_tree.h"
#include "tensor/tree_kernel.h"

namespace samegrad {

// Calls f(element of the whole, element of the block, count) for pieces of elements
// [some.begin, some.end) of the block, one after the other. `columns` are those of the whole.
template <class F>
void for_each_piece(const Rect& block, std::int64_t columns, TreeRange some, const F& f) {
  const std::int64_t all = block.columns == columns ? block.size() : block.columns;  // of one
  for (std::int64_t at = some.begin; at < some.end;) {
    const std::int64_t row = at / block.columns, column = at % block.columns;
    const std::int64_t count = std::min((at / all + 1) * all, some.end) - at;
    f((block.row + row) * columns + block.column + column, at, count);
    at += count;
  }
}

}  // namespace samegrad
