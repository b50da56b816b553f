// Operations per element of elementwise functions, by the column `flops` of their lines in the .def
// files. They decide the number of threads and predict times.
#pragma once

#include "ir/op_def.h"
#include "kernels/elementwise_fn.h"

namespace samegrad {

// Rough costs: the order of magnitude decides.
inline constexpr double kDivisionFlops = 4, kPolynomialFlops = 16, kPowerFlops = 32;

inline constexpr double kUnaryFlops[] = {
#define SAMEGRAD_UNARY(name, doc, dtypes, result, forward, gradient, low, high, flops, linearity) \
  flops,
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY
};
inline constexpr double kBinaryFlops[] = {
#define SAMEGRAD_BINARY(name, doc, dtypes, result, forward, gradient_a, gradient_b, low, high, \
                        flops, linearity, rejected)                                            \
  flops,
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
};

constexpr double flops_of_function(UnaryFn fn) {
  return kUnaryFlops[int(fn)];
}

constexpr double flops_of_function(BinaryFn fn) {
  return kBinaryFlops[int(fn)];
}

constexpr double flops_of_function(const BlockFn& block) {
  switch (block.kind) {
    case BlockFn::kUnary:
      return flops_of_function(UnaryFn(block.fn));
    case BlockFn::kBinary:
      return flops_of_function(BinaryFn(block.fn));
    case BlockFn::kSoftmax:
      return kPolynomialFlops;
    default:
      return 1;
  }
}

// OpDef::flops of an op that calls the function once for each element of its result.
template <auto kFn>
constexpr double (*element_flops())(const CostArgs&) {
  if constexpr (flops_of_function(kFn) == 1) return nullptr;
  return [](const CostArgs& args) { return flops_of_function(kFn) * double(args.out[0].size()); };
}

}  // namespace samegrad
