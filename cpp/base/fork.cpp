#include "base/fork.h"

#include <pthread.h>

#include <atomic>

namespace samegrad {
namespace {

std::atomic<std::uint64_t> forks{0};

}  // namespace

std::uint64_t process_generation() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace samegrad
