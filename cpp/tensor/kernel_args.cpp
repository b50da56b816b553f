#include "tensor/kernel_args.h"

#include <algorithm>

namespace samegrad {

void* Scratch::take(std::size_t bytes) {
  constexpr std::size_t kBlock = std::size_t(1) << 18;
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  // Blocks never move, so earlier pieces stay valid; a piece that does not fit opens the next one.
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_]->size()) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    blocks_.push_back(std::make_unique<Buffer>(std::max(bytes, kBlock)));
    used_ = 0;
  }
  void* piece = blocks_[block_]->data() + used_;
  used_ += bytes;
  return piece;
}

}  // namespace samegrad
