// Attributes of the rows of cross_entropy.cpp.
#pragma once

#include "base/number.h"
#include "tensor/attrs.h"

namespace samegrad {

struct CrossEntropyAttrs {
  Number smoothing = 0.0;

  static constexpr auto fields() {
    return std::tuple(defaulted("smoothing", &CrossEntropyAttrs::smoothing,
                                "What part of the label's probability is shared out equally among "
                                "the other classes."));
  }
};

}  // namespace samegrad
