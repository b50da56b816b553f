// Unique-ownership fence: orders writes into memory after the reads of its previous owners.
#pragma once

#include <atomic>
#include <memory>

#include "tensor/array.h"

namespace samegrad {

// The count of owners alone does not order our writes after the reads of an owner that released the
// buffer.
inline void unique_ownership_fence([[maybe_unused]] const std::shared_ptr<Buffer>& buffer) {
#ifdef __SANITIZE_THREAD__
  (void)std::shared_ptr<Buffer>(buffer);  // ThreadSanitizer knows counts, no fences
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace samegrad
