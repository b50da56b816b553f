// Memory between two uses: runs lease their arenas and scratch here, so that programs hold none.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/synchronized.h"
#include "tensor/array.h"

namespace samegrad {

class BufferPool {
 public:
  // The pool of the process; never destroyed, as threads may outlive static destruction.
  static BufferPool& instance();

  // A buffer of at least so many bytes, its contents whatever they were.
  std::unique_ptr<Buffer> take(std::size_t bytes);
  // Kept for the next take, or freed: what is idle stays in proportion to what lately was in use.
  void give(std::unique_ptr<Buffer> buffer) noexcept;
  // Afterwards that many buffers of the size are idle: takes of no other thread in between, the
  // next ones cannot fail.
  void reserve(std::size_t count, std::size_t bytes);

  std::int64_t idle_bytes();

 private:
  struct PoolState {
    std::vector<std::unique_ptr<Buffer>> idle;  // the longest idle first
    std::size_t idle_bytes = 0;
    std::size_t leased_bytes = 0;
    std::size_t leases = 0;
    // The most bytes leased at once, in this epoch and in the one before.
    std::size_t peak = 0, last_peak = 0;
    std::uint32_t takes = 0;

    std::unique_ptr<Buffer> find(std::size_t bytes);
    void note_lease(std::size_t bytes);
    std::size_t limit() const;
  };
  Synchronized<PoolState> state_;
};

// Memory of the pool for as long as it is in scope.
class PooledBuffer {
 public:
  PooledBuffer() = default;
  explicit PooledBuffer(std::size_t bytes) : buffer_(BufferPool::instance().take(bytes)) {}
  ~PooledBuffer() {
    if (buffer_) BufferPool::instance().give(std::move(buffer_));
  }
  PooledBuffer(PooledBuffer&&) = default;
  PooledBuffer& operator=(PooledBuffer&& other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }

  std::byte* data() const { return buffer_->data(); }
  std::size_t size() const { return buffer_ ? buffer_->size() : 0; }

 private:
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace samegrad
