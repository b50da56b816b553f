// Attributes of the ops in cross_entropy.cpp.
#pragma once

#include "base/scalar.h"
#include "tensor/attrs.h"

namespace samegrad {

struct CrossEntropyAttrs {
  Scalar smoothing = 0.0;

  static constexpr auto fields() {
    return std::tuple(defaulted("smoothing", &CrossEntropyAttrs::smoothing,
                                "Part of the label's probability that is distributed equally over "
                                "the other classes."));
  }
};

}  // namespace samegrad
