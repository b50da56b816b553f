// The process's random state: everything that decides the next draw.
#pragma once

#include <cstdint>

namespace samegrad {

struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;     // steps that drew random numbers
  std::uint64_t ordinal = 0;  // draws outside any step
  std::uint64_t created = 0;  // variables initialised so far
};

RandomState& random_state();

}  // namespace samegrad
