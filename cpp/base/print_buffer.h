// Lines that one run of a program prints, kept until its caller shows them.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace samegrad {

class PrintBuffer {
 public:
  // From any thread of the run.
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  // All lines since the last call, in order.
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace samegrad
