// What the rows of scatter.cpp run.
#pragma once

#include "tensor/kernel_args.h"

namespace samegrad {

void ravel_index_kernel(const KernelArgs& args);
void batch_gather_kernel(const KernelArgs& args);
void batch_segment_sum_kernel(const KernelArgs& args);
void segment_max_kernel(const KernelArgs& args);
void segment_min_kernel(const KernelArgs& args);
void segment_last_kernel(const KernelArgs& args);

}  // namespace samegrad
