// Attributes of the ops in scatter.cpp.
#pragma once

#include "tensor/attrs.h"

namespace samegrad {

struct RavelAttrs {
  std::int64_t batch_dims = 0;
  bool absent = false;

  static constexpr auto fields() {
    return std::tuple(
        defaulted("batch_dims", &RavelAttrs::batch_dims, "Axes before those that are indexed."),
        defaulted("absent", &RavelAttrs::absent,
                  "A negative index stands for none: the position behind the last."));
  }
};

struct BatchIndexAttrs {
  std::int64_t batch_dims = 1;

  static constexpr auto fields() {
    return std::tuple(required("batch_dims", &BatchIndexAttrs::batch_dims,
                               "Leading axes that each have indices of their own."));
  }
};

}  // namespace samegrad
