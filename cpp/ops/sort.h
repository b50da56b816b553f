// Attributes of the ops in sort.cpp.
#pragma once

#include "tensor/attrs.h"

namespace samegrad {

struct SortAttrs {
  std::int64_t axis = -1;
  bool descending = false;

  static constexpr auto fields() {
    return std::tuple(
        defaulted("axis", &SortAttrs::axis, "The axis to sort along; negative from the last."),
        defaulted("descending", &SortAttrs::descending, "From the largest to the smallest."));
  }
};

struct TopKAttrs {
  std::int64_t k = 1;

  static constexpr auto fields() {
    return std::tuple(required("k", &TopKAttrs::k, "How many of the last axis."));
  }
};

struct SearchAttrs {
  bool right = false;

  static constexpr auto fields() {
    return std::tuple(defaulted("right", &SearchAttrs::right, "Behind equal elements."));
  }
};

}  // namespace samegrad
