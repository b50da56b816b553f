// Looking for NaN and infinities.
#pragma once

#include <atomic>

namespace samegrad {

// Whether every result is looked at, in steps and at once; the first that is not finite raises.
inline std::atomic<bool> check_numerics{false};

}  // namespace samegrad
