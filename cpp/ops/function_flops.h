// Cost of elementwise functions in operations per element: it decides what is worth a thread, and
// feeds predictions.
#pragma once

#include "ir/op_def.h"
#include "kernels/elementwise_fn.h"

namespace samegrad {

// Polynomials and divisions; rough, as the order of magnitude decides.
inline constexpr double kDivisionFlops = 4, kPolynomialFlops = 16, kPowerFlops = 32;

constexpr double flops_of_function(UnaryFn fn) {
  switch (fn) {
    case UnaryFn::k_sqrt:
    case UnaryFn::k_rsqrt:
    case UnaryFn::k_reciprocal:
      return kDivisionFlops;
    case UnaryFn::k_exp:
    case UnaryFn::k_expm1:
    case UnaryFn::k_log:
    case UnaryFn::k_log1p:
    case UnaryFn::k_sin:
    case UnaryFn::k_cos:
    case UnaryFn::k_tan:
    case UnaryFn::k_asin:
    case UnaryFn::k_acos:
    case UnaryFn::k_atan:
    case UnaryFn::k_sinh:
    case UnaryFn::k_cosh:
    case UnaryFn::k_tanh:
    case UnaryFn::k_asinh:
    case UnaryFn::k_acosh:
    case UnaryFn::k_atanh:
    case UnaryFn::k_sigmoid:
    case UnaryFn::k_softplus:
    case UnaryFn::k_erf:
      return kPolynomialFlops;
    default:
      return 1;
  }
}

constexpr double flops_of_function(BinaryFn fn) {
  switch (fn) {
    case BinaryFn::k_div:
    case BinaryFn::k_div_no_nan:
    case BinaryFn::k_xdivy:
    case BinaryFn::k_floor_div:
    case BinaryFn::k_mod:
      return kDivisionFlops;
    case BinaryFn::k_xlogy:
    case BinaryFn::k_atan2:
      return kPolynomialFlops;
    case BinaryFn::k_pow:
      return kPowerFlops;
    default:
      return 1;
  }
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

// OpDef::flops of a row that calls the function once for each element of its result.
template <auto kFn>
constexpr double (*element_flops())(const CostArgs&) {
  if constexpr (flops_of_function(kFn) == 1) return nullptr;
  return [](const CostArgs& args) { return flops_of_function(kFn) * double(args.out[0].size()); };
}

}  // namespace samegrad
