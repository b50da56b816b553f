// Measured rates of this machine, for predictions; no plan depends on them.
#pragma once

#include "plan/cost.h"

namespace samegrad {

// Of as many threads as are in use; measured when first asked for, in some hundredths of a second.
Rates measured_rates();

}  // namespace samegrad
