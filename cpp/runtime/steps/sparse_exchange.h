// Sparse gradients over several processes: sends the touched rows of all processes with their sums,
// and no array of the variable's size.
#pragma once

#include "runtime/execution_context.h"

namespace samegrad {

// Once this process's rows are named: afterwards the binding has those of all processes, summed
// in the order of the tree over the replicas.
void exchange_rows(const Plan& plan, const SparseUpdate& step, SparseUpdateBinding& binding,
                   const ExecuteParams& call, ExecutionContext& context);

}  // namespace samegrad
