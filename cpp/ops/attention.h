// Attributes of the rows of attention.cpp, and what they run.
#pragma once

#include "base/number.h"
#include "tensor/attrs.h"
#include "tensor/kernel_args.h"

namespace samegrad {

struct AttentionAttrs {
  Number scale = 1.0;
  bool causal = false;

  static constexpr auto fields() {
    return std::tuple(
        required("scale", &AttentionAttrs::scale, "What the scores are multiplied by."),
        defaulted("causal", &AttentionAttrs::causal,
                  "Whether the mask hides all keys behind the number of the query, "
                  "so that their scores need not be computed."));
  }
};

// The score that a masked pair has: its weight is 0 unless the whole row is masked, which then has
// equal weights instead of none.
double masked_score(DType dtype);

void attention_kernel(const KernelArgs& args);
void attention_grad_kernel(const KernelArgs& args);

}  // namespace samegrad
