// Numbers that gradients are reduced to, as for a norm, that are zeros but for the rows that
// examples name: the blocks of the reduction order in which such a row is, and no others.
#pragma once

#include "runtime/context.h"

namespace samegrad {

// With the bits of the reduction of all rows, which it goes through where those without gradient
// change the result.
void run_row_reduction(const Plan& plan, const PlanStep& step, Context& context);

}  // namespace samegrad
