// Kernel calls that all threads share.
#pragma once

#include "ir/graph.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// Runs a call with the bits of the op's kernel: on the threads of args.parallel, if there are any
// and the call is worth them (should_parallelize in plan/cost.h), in the parts that the op
// declares. A kernel without parts gets these threads, and may divide itself.
void run_shared(const Node& node, const KernelArgs& args);

}  // namespace samegrad
