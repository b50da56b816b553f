// Asking for memory that is read soon, where no processor sees it coming.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/rounding.h"

namespace samegrad {

// Prefetches `bytes` of data, at most `most`.
inline void prefetch_bytes(const std::byte* data, std::int64_t bytes, std::int64_t most) {
  constexpr std::int64_t kLine = 64;
  for (std::int64_t at = 0; at < std::min(bytes, most); at += kLine) __builtin_prefetch(data + at);
}

// Memory of a result's shape, such as the weights that a gradient updates. Each part is read as
// soon as the same part of the result is complete. The thread that computes the part prefetches it
// on the way.
struct PrefetchBlocks {
  static constexpr int kMost = 4;
  const std::byte* data[kMost];  // of the first element of a block
  int count = 0;
  std::int64_t stride = 0;  // bytes from a row to the next
};

// A rectangle of memory, fetched some lines of the cache at a time beside other work.
class PrefetchRows {
 public:
  PrefetchRows() = default;
  PrefetchRows(const void* first, std::int64_t row_bytes, std::int64_t stride, std::int64_t rows)
      : row_(static_cast<const std::byte*>(first)),
        row_bytes_(row_bytes),
        stride_(stride),
        rows_(row_bytes > 0 ? rows : 0) {}

  std::int64_t lines() const { return rows_ * divide_up(row_bytes_, kLine); }

  void fetch(std::int64_t lines) {
    for (; lines > 0 && rows_ > 0; --lines) {
      __builtin_prefetch(row_ + at_, 0, 2);
      at_ += kLine;
      if (at_ < row_bytes_) continue;
      at_ = 0;
      row_ += stride_;
      --rows_;
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;
  const std::byte* row_ = nullptr;
  std::int64_t row_bytes_ = 0, stride_ = 0, rows_ = 0, at_ = 0;
};

}  // namespace samegrad
