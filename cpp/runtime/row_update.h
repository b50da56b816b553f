// Updates by gradients that are zeros but for the rows that examples name.
#pragma once

#include "runtime/context.h"

namespace samegrad {

// Updates the rows that are named; all of them where rows without gradient change: always, by the
// definition of the optimizer, or with the numbers of this run, a rate that is infinite, say.
void run_row_update(const Plan& plan, RowUpdateId update, const Call& call, Context& context);

}  // namespace samegrad
