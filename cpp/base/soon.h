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

// A rectangle of memory, fetched some lines of the cache at a time beside other work.
class SoonRows {
 public:
  SoonRows() = default;
  SoonRows(const void* first, std::int64_t row_bytes, std::int64_t stride, std::int64_t rows)
      : row_(static_cast<const std::byte*>(first)),
        row_bytes_(row_bytes),
        stride_(stride),
        rows_(row_bytes > 0 ? rows : 0) {}

  std::int64_t lines() const { return rows_ * ((row_bytes_ + kLine - 1) / kLine); }

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
