// Values of traced tensors, where they can be looked at.
#pragma once

#include <vector>

#include "train/graph_trace.h"

namespace samegrad {

// The tensor's arrays: one if replicas agree, else one per replica. TypeError if it has none yet.
// `anywhere`: also while Python describes a branch or loop.
PerReplica<Array> evaluate(const Tensor& tensor, const char* op_name, bool anywhere = false);
// The one array; TypeError if it has no value yet, or if replicas have different ones.
Array known(const Tensor& tensor, const char* op_name);

}  // namespace samegrad
