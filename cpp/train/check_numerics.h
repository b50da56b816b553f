// The switch that checks every result for NaN and infinities.
#pragma once

#include <atomic>

namespace samegrad {

// True if every result is checked, in steps and eagerly; the first that is not finite raises.
inline std::atomic<bool> check_numerics{false};

}  // namespace samegrad
