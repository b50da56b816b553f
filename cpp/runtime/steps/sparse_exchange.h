// Sparse gradients over several processes: sends the touched rows of all processes with their sums,
// and no array of the variable's size.
#pragma once

#include "runtime/context.h"

namespace samegrad {

// Once this process's rows are named: afterwards the binding has those of all processes, summed
// in the order of the tree over the replicas.
void exchange_rows(const Plan& plan, const RowUpdate& step, RowBinding& binding, const Call& call,
                   Context& context);

}  // namespace samegrad
