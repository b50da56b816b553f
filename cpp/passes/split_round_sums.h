// A pass that is not an option: it only says what the runtime carries out faster.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace samegrad {

// What the rounds of a loop add up of products over their examples (the gradients of the weights of
// a recurrent layer) becomes a loop of its own behind it, which has the operands of the products
// from histories and adds in the same order. The runtime goes through the sum of such a loop once
// for many rounds (runtime/round_sum.h).
Graph split_round_sums(Graph graph);

// A round that adds to a variable: before + product, a matrix product over the examples on the
// first axis, which an all-reduce may add up first.
struct RoundSum {
  const Node *product, *all_reduce, *add;  // all_reduce may be null
};
std::optional<RoundSum> find_round_sum(const Graph& round, Value before, Value after);

}  // namespace samegrad
