// Attributes and kernels of the ops in attention.cpp.
#pragma once

#include <span>

#include "base/dtype.h"
#include "base/scalar.h"
#include "tensor/attrs.h"
#include "tensor/kernel_args.h"

namespace samegrad {

struct AttentionAttrs {
  Scalar scale = 1.0;
  bool causal = false;
  bool zero_blind = false;
  Scalar rate = 0.0;
  DType draw = DType::kFloat32;

  static constexpr auto fields() {
    return std::tuple(
        required("scale", &AttentionAttrs::scale, "What the scores are multiplied by."),
        defaulted("causal", &AttentionAttrs::causal,
                  "Whether the masks hide all keys behind the number of the query, "
                  "so that their scores need not be computed."),
        defaulted("zero_blind", &AttentionAttrs::zero_blind,
                  "Whether a query that may look at no key has weights of 0, rather than equal "
                  "ones."),
        defaulted("rate", &AttentionAttrs::rate,
                  "Probability that a weight is dropped, by a key that is the last operand."),
        defaulted("draw", &AttentionAttrs::draw, "The dtype in which this is drawn."));
  }
};

// The score that a masked pair has: its weight is 0 unless the whole row is masked, which then has
// equal weights instead of none.
double masked_score(DType dtype);

// The masks among the operands, of which those from `first` on are query, key and value.
template <class Operand>
std::span<const Operand> masks_among(std::span<const Operand> in, std::size_t first,
                                     const AttentionAttrs& attrs) {
  const std::size_t drop = attrs.rate.as<double>() > 0 ? 1 : 0;
  return in.subspan(first + 3, in.size() - first - 3 - drop);
}

void attention_kernel(const KernelArgs& args);
void attention_grad_kernel(const KernelArgs& args);

}  // namespace samegrad
