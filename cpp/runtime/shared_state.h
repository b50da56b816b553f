// Variables that a step writes into memory that all ranks of a machine map.
#pragma once

#include <vector>

#include "runtime/execution_context.h"

namespace samegrad {

// Per write of the graph, the array that it goes into, where all ranks have one together; no
// array: each writes its own. All ranks ask for it at the same time, before anything is summed;
// updates block by block are told (UpdateBinding::in_common).
//
// A variable moves there with the first update that ranks can divide. Each rank then writes what it
// reads of the old value in its own memory. Any other write gives the variable memory of its own
// again, as its array is borrowed. The next divided update moves it back. No rank writes while a
// sum of the step lacks parts, and the new values are equal on all ranks. A rank may therefore read
// a variable between steps at any time.
std::vector<Array> shared_state(const Plan& plan, const ExecuteParams& call,
                                ExecutionContext& context);

}  // namespace samegrad
