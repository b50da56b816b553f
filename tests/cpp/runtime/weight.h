// A variable of one array for tests of steps.
#pragma once

#include <vector>

#include "runtime/execute_params.h"

namespace samegrad::testing {

class Weight final : public StateCell {
 public:
  explicit Weight(const Shape& shape, int seed = 0) : components_{Array(DType::kFloat32, shape)} {
    float* numbers = components_[0].data<float>();
    for (std::int64_t i = 0; i < shape.size(); ++i) {
      numbers[i] = float((i + seed) * 37 % 101) / 64 - 0.7f;
    }
  }
  PerReplica<Array>& components() override { return components_; }
  Array& array() { return components_[0]; }
  bool is_in_common() const { return common && !components_[0].buffer()->owns_memory(); }

 private:
  PerReplica<Array> components_;
};

}  // namespace samegrad::testing
