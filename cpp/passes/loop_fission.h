// Loop fission without an option: it only states what the runtime executes faster.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace samegrad {

// Loop fission of a loop's sums of products over the examples (the gradients of the weights of a
// recurrent layer). The sums become a loop of their own behind it. It takes the operands of the
// products from histories and adds in the same order. The runtime passes over the sum of such a
// loop once for many iterations (runtime/iteration_sum.h).
Graph fission_loops(Graph graph);

// An iteration that adds to a variable: before + product, a matrix product over the examples on the
// first axis, which an all-reduce may add up first.
struct IterationSum {
  const Node *product, *all_reduce, *add;  // all_reduce may be null
};
std::optional<IterationSum> find_iteration_sum(const Graph& iteration, Value before, Value after);

}  // namespace samegrad
