// Measured rates of this machine, for predictions; no plan depends on them.
#pragma once

#include "plan/cost.h"

namespace samegrad {

// Rates of the threads in use; measured at the first request, in some hundredths of a second.
Rates measured_rates();

}  // namespace samegrad
