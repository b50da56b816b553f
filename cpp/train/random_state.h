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

// The state that this thread draws from: the process's, or one of its own.
RandomState& random_state();
// Functions that prepare data draw from a state of their own, so that what they draw depends on
// their element alone, whatever the rest of the process draws meanwhile. Null: the process's again.
void use_random_state(RandomState* own);

}  // namespace samegrad
