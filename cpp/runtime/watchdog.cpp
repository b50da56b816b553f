#include "runtime/watchdog.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace samegrad {

Watchdog::Watchdog(std::chrono::milliseconds patience, std::string why)
    : thread_([this, patience, why = std::move(why)] {
        std::unique_lock lock(mutex_);
        if (wake_.wait_for(lock, patience, [this] { return over_; })) return;
        std::fprintf(stderr, "%s\n", why.c_str());
        std::fflush(nullptr);
        ::_exit(1);
      }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

}  // namespace samegrad
