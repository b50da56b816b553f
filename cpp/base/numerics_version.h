// Versions of the numerics: two builds with equal versions give equal bits for one program.
// That of sums is kReductionOrder.
#pragma once

#include "base/reduction_order.h"

namespace samegrad {

// The bits of elementwise and special functions, random numbers, conversions and decompositions.
// Raised with each change that changes them. Checkpoints record it.
//   1  the C library for powers, large angles and special functions; decompositions in vectors
//   2  own functions alone; decompositions in scalars, the same on every processor
inline constexpr int kFunctionVersion = 2;

}  // namespace samegrad
