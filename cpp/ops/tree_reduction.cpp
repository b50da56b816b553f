#include "ops/tree_reduction.h"

#include <cstring>

namespace samegrad {

void neutral_zeros(const NeutralArgs& args) {
  const std::size_t item = size_of(args.dtype);
  const std::size_t bytes = std::size_t(args.block.columns) * item;
  if (bytes == 0) return;
  for (std::int64_t r = 0; r < args.block.rows; ++r) {
    std::memset(args.state.data[0] + std::size_t(r * args.state.stride) * item, 0, bytes);
  }
}

}  // namespace samegrad
