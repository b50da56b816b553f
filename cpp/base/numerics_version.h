// Versions of the numerics: two builds with equal versions give equal bits for one program.
#pragma once

namespace samegrad {

// The order of every sum: the constants of base/order.h and their use. Raised with each change of
// them that changes bits. Checkpoints record it.
//   1  a binary tree over the examples of each replica's batch
//   2  long sums and contractions inside an example are cut into blocks
//   3  the gradient of a matrix of sequences is one sum over examples and time steps
//   4  the tree is over the examples of the global batch, for any division of it
inline constexpr int kReductionOrder = 4;

// The bits of elementwise and special functions, random numbers, conversions and decompositions.
// Raised with each change that changes them. Checkpoints record it.
//   1  the C library for powers, large angles and special functions; decompositions in vectors
//   2  own functions alone; decompositions in scalars, the same on every processor
inline constexpr int kFunctionVersion = 2;

}  // namespace samegrad
