// Grouped GEMM: a product of many rows with one matrix, divided among the threads.
#pragma once

#include "kernels/table.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// `whole` tells everything but columns and scratch. Blocks of rows and columns are independent, so
// however they are cut, the bits are the same.
void multiply_grouped(const GroupedGemm& whole, DType dtype, const ParallelFor* parallel,
                      Scratch& scratch);

}  // namespace samegrad
