// Host: the program that calls the engine. The Python bindings have one, C++ tests their own.
#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace samegrad {

struct Host {
  using Work = std::function<void()>;

  // Returns the line of user code that runs, e.g. "train.py:31"; null: no lines are known.
  std::string (*locate)() = nullptr;
  // Runs long work, which touches no trace, while other threads of the host go on.
  void (*unlocked)(const Work& work) = nullptr;
  // True if every result is checked: the first one that is not finite raises.
  std::atomic<bool> check_numerics{false};

  void run_unlocked(const Work& work) const { unlocked ? unlocked(work) : work(); }
};

}  // namespace samegrad
