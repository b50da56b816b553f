// Kernel calls that all threads share.
#pragma once

#include "ir/graph.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// Runs a call with the bits of the op's kernel: in the parts that the op declares, on the threads
// of args.parallel. A kernel without parts gets the arguments as they are, and may divide itself.
void run_shared(const Node& node, const KernelArgs& args);

}  // namespace samegrad
