// The replicas' shares of one batch, before anybody looks at them.
#pragma once

#include <vector>

#include "tensor/non_addressable.h"

namespace samegrad {

// Rows [bounds[r], bounds[r + 1]) for replica r; of replicas [first, last) they are here, and other
// processes have the others. Python sees a sequence of tensors, which are made
// when they are looked at: a step takes the arrays without them.
struct PerReplicaBatch {
  Array array;  // of the rows that are here
  std::vector<std::int64_t> bounds;
  std::size_t first = 0, last = bounds.size() - 1;

  std::size_t size() const { return bounds.size() - 1; }
  Array part(std::size_t replica) const {
    if (first <= replica && replica < last) {
      return array.rows(bounds[replica] - bounds[first], bounds[replica + 1] - bounds[first]);
    }
    Shape shape = array.shape();
    shape[0] = bounds[replica + 1] - bounds[replica];
    return non_addressable_array(array.dtype(), shape);
  }
  // The shape of all parts together.
  Shape shape() const {
    Shape all = array.shape();
    all[0] = bounds.back();
    return all;
  }
};

}  // namespace samegrad
