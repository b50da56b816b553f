// Memory of the shape of a result, of which a part is read as soon as the same part of the result
// is complete (the weights that a gradient updates): who computes the part fetches it on the way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samegrad {

struct Soon {
  static constexpr int kMost = 4;
  const std::byte* data[kMost];  // of the first element of a block
  int count = 0;
  std::int64_t stride = 0;  // bytes from a row to the next
};

}  // namespace samegrad
