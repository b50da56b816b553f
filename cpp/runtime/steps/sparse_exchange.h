// Gradients that are rows of a table, over several processes: the rows that the examples of any of
// them name travel, with their sums, and nothing of the size of the table.
#pragma once

#include "runtime/context.h"

namespace samegrad {

// Once this process's rows are named: afterwards the binding has those of all processes, summed
// in the order of the tree over the replicas.
void exchange_rows(const Plan& plan, const RowUpdate& step, RowBinding& binding, const Call& call,
                   Context& context);

}  // namespace samegrad
