// Whole-batch values: functions of per-replica sums, rewritten over the examples of all replicas.
#pragma once

#include "ir/builder.h"

namespace samegrad {

// The value that one device would compute: sums over the replica's examples, and their number, are
// completed by an all-reduce, and what the program makes of them is rematerialized from those. So
// Σ(w·l) / Σw of a replica becomes the weighted mean over all of them, whatever their weights.
// kNoValue where the value is made of examples in another way (a maximum, a draw, a loop), has a
// derivative of the program's own, or is divided by the number of replicas already.
Value over_all_replicas(Builder& builder, Value value);

}  // namespace samegrad
