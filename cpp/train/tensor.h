// Tensor: an array, a value of a graph that is being traced, or (under an eager tape) both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "ir/graph.h"
#include "tensor/array.h"

namespace samegrad {

class GraphTrace;

struct Tensor {
  ValueType type;  // of an array: the concrete shape
  Array array;
  std::shared_ptr<GraphTrace> trace;  // the trace it belongs to, if it has no array
  // Under a tape: the array's name (ArrayName). No trace has named it while `recorded` is 0.
  mutable std::uint64_t recorded = 0;
  mutable Value value = kNoValue;
  std::optional<CountPowers> counts = {};  // of an array: what the number is made of

  bool symbolic() const { return trace != nullptr; }
};

// A concrete tensor.
Tensor make_tensor(const Array& array, const ExampleAxis& batch = {});

}  // namespace samegrad
