// Synchronized value: threads use it in turns. A forked child finds it free, as the thread that
// held it does not exist there. A value that this thread was changing is left alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/fork.h"

namespace samegrad {

template <class T>
class Synchronized {
 public:
  class Access {
   public:
    explicit Access(Synchronized& guarded) : guarded_(guarded) { guarded.lock_(); }
    ~Access() { guarded_.unlock_(); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
    T& operator*() const { return *guarded_.value_; }
    T* operator->() const { return guarded_.value_.get(); }

   private:
    Synchronized& guarded_;
  };

  Access lock() { return Access(*this); }

 private:
  void lock_() {
    const auto mine = std::uint32_t(process_generation()) + 1;
    std::uint32_t seen = 0;
    while (!holder_.compare_exchange_weak(seen, mine, std::memory_order_acquire)) {
      if (seen == mine) holder_.wait(mine);
      if (seen != 0 && seen != mine && holder_.compare_exchange_strong(seen, mine)) {
        // The thread that held it stayed in the parent: its value may be half changed.
        static_cast<void>(value_.release());
        value_ = std::make_unique<T>();
        return;
      }
      seen = 0;
    }
  }
  void unlock_() {
    holder_.store(0, std::memory_order_release);
    holder_.notify_one();
  }

  std::atomic<std::uint32_t> holder_{0};  // 0, or one more than the generation of the process
  std::unique_ptr<T> value_ = std::make_unique<T>();
};

}  // namespace samegrad
