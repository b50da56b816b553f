// Whole-batch values: functions of per-replica sums, rewritten over the examples of all replicas.
#pragma once

#include "ir/builder.h"

namespace samegrad {

// The value that one device would compute. Sums over the replica's examples, and their number, are
// completed by an all-reduce, and the nodes that use them are rematerialized. Thus Σ(w·l) / Σw of a
// replica becomes the weighted mean over all replicas, whatever their weights. kNoValue where the
// value depends on examples in another way (a maximum, a random op, a loop). kNoValue as well if it
// has a custom gradient, or is already divided by the number of replicas.
Value over_all_replicas(Builder& builder, Value value);

}  // namespace samegrad
