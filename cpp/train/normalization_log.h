// Log of the uses of values that the check of loss normalization examines.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/loss_normalization.h"

namespace samegrad {

class NormalizationLog {
 public:
  void add(ValueUse::Kind kind, Value value, std::int32_t location) {
    uses_.push_back({kind, value, location});
  }
  NormalizationReport check(const Graph& graph, const std::vector<Value>& outputs) const {
    return check_loss_normalization(graph, outputs, uses_);
  }

 private:
  std::vector<ValueUse> uses_;
};

}  // namespace samegrad
