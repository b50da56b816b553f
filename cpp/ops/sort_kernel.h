// Kernels of sort.cpp: sorting and top-k.
#pragma once

#include "ir/op_def.h"

namespace samegrad {

// Positions (int32) along the lines [begin, end), in ascending or descending order. Equal elements
// keep their order, and NaN is last in both.
std::int64_t lines_to_sort(const CostArgs& args);
void run_arg_sort(const KernelArgs& args, std::int64_t begin, std::int64_t end);
// The first k of the descending order of each line.
std::int64_t lines_of_top_k(const CostArgs& args);
void run_top_k(const KernelArgs& args, std::int64_t begin, std::int64_t end);
// For each of the values.
void run_search_sorted(const KernelArgs& args, std::int64_t begin, std::int64_t end);

}  // namespace samegrad
