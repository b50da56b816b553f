// The process's random state: everything that determines the next sample.
#pragma once

#include <atomic>
#include <cstdint>

namespace samegrad {

struct RandomState {
  RandomState() = default;
  RandomState(std::uint64_t seed_, std::uint64_t step_) : seed(seed_), step(step_) {}

  // Steps, eager code and Python move on at the same time.
  std::atomic<std::uint64_t> seed{0};
  std::atomic<std::uint64_t> step{0};     // steps that drew random numbers
  std::atomic<std::uint64_t> ordinal{0};  // draws outside any step
  std::atomic<std::uint64_t> created{0};  // variables initialised so far
};

// The state that this thread draws from: the process's, or one of its own. Functions that prepare
// data have one (`Current::random`), so that what they draw depends on their element alone,
// whatever the rest of the process draws meanwhile.
RandomState& random_state();

}  // namespace samegrad
