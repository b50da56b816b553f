// Watchdog: ends a process that waits where no thread can wake it, as in a call of MPI.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace samegrad {

// A process in which one lives for longer than it may writes `why` to its standard error and exits
// with status 1.
class Watchdog {
 public:
  Watchdog(std::chrono::milliseconds patience, std::string why);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace samegrad
