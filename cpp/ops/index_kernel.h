// What the rows of index.cpp run.
#pragma once

#include "tensor/kernel_args.h"

namespace samegrad {

void gather_kernel(const KernelArgs& args);
void segment_sum_kernel(const KernelArgs& args);
void one_hot_kernel(const KernelArgs& args);
void take_along_kernel(const KernelArgs& args);
void take_along_grad_kernel(const KernelArgs& args);

}  // namespace samegrad
