// Iterations that loop fission makes, and the runtime recognizes (runtime/iteration_sum.h).
#pragma once

#include <optional>

#include "ir/graph.h"

namespace samegrad {

// An iteration that adds to a variable: before + product, a matrix product over the examples on the
// first axis, which an all-reduce may add up first.
struct IterationSum {
  const Node *product, *all_reduce, *add;  // all_reduce may be null
};
std::optional<IterationSum> find_iteration_sum(const Graph& iteration, Value before, Value after);

}  // namespace samegrad
