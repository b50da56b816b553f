// What the rows of order.cpp run.
#pragma once

#include "tensor/kernel_args.h"

namespace samegrad {

// Positions (int32) along each line, in ascending or descending order. Of equal elements the first
// one comes first, and NaN comes last in both.
void arg_sort_kernel(const KernelArgs& args);
// The first k of the descending order of each line.
void top_k_kernel(const KernelArgs& args);
void search_sorted_kernel(const KernelArgs& args);

}  // namespace samegrad
