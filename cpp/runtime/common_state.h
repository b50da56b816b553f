// Variables that a step writes into memory that all ranks of a machine see.
#pragma once

#include <vector>

#include "runtime/context.h"

namespace samegrad {

// Per write of the graph, the array that it goes into, where all ranks have one together; no
// array: each writes its own. All ranks ask for it at the same time, before anything is summed;
// updates block by block are told (UpdateBinding::in_common).
//
// A variable comes there with the first update that ranks can share, each writing what it reads of
// the old value in its own memory. Whatever else writes a variable gives it memory of its own
// again, as its array is borrowed; the next update by shares leads back. While no sum of a step
// has all its parts nobody writes, and what is written is the same for all ranks: so a rank may
// read a variable between steps, whatever others do.
std::vector<Array> common_state(const Plan& plan, const Call& call, Context& context);

}  // namespace samegrad
