// Gradients that are zeros but for the rows that examples name: these rows, one by one, through the
// tree over each replica's examples, the tree over the replicas and the update. Nothing of the size
// of the variable is read or written.
#pragma once

#include "runtime/context.h"

namespace samegrad {

// Once nodes are bound; what is in the arena has no address yet.
RowBinding bind_row_update(const Plan& plan, const RowUpdate& update, Context& context);

// Of Plan::row_updates: which rows are named. Raises where an example names none that there is.
void name_rows(const Plan& plan, RowUpdateId update, Context& context);

// Updates the rows that are named; all of them where numbers of this run, a rate that is infinite
// or negative, say, change rows without gradient.
void run_row_update(const Plan& plan, RowUpdateId update, Context& context);

}  // namespace samegrad
