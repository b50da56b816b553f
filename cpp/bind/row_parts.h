// The replicas' shares of one batch, before anybody looks at them.
#pragma once

#include <vector>

#include "tensor/array.h"

namespace samegrad {

// Rows [bounds[r], bounds[r + 1]) for replica r. Python sees a sequence of tensors, which are made
// when they are looked at: a step takes the arrays without them.
struct RowParts {
  Array array;
  std::vector<std::int64_t> bounds;

  std::size_t size() const { return bounds.size() - 1; }
  Array part(std::size_t replica) const { return array.rows(bounds[replica], bounds[replica + 1]); }
};

}  // namespace samegrad
