// Kernels of scatter.cpp.
#pragma once

#include "ir/op_def.h"

namespace samegrad {

void ravel_index_kernel(const KernelArgs& args);
std::int64_t rows_of_batch_gather(const CostArgs& args);
void run_batch_gather(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void batch_segment_sum_kernel(const KernelArgs& args);
void segment_max_kernel(const KernelArgs& args);
void segment_min_kernel(const KernelArgs& args);
void segment_last_kernel(const KernelArgs& args);

}  // namespace samegrad
