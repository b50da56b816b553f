// Attributes of the ops in scan.cpp.
#pragma once

#include "tensor/attrs.h"

namespace samegrad {

struct ScanAttrs {
  std::int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;

  static constexpr auto fields() {
    return std::tuple(
        defaulted("axis", &ScanAttrs::axis, "The axis to go along; negative from the last."),
        defaulted("exclusive", &ScanAttrs::exclusive, "Each element without itself."),
        defaulted("reverse", &ScanAttrs::reverse, "From the last element to the first."));
  }
};

}  // namespace samegrad
