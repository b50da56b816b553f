// What decides among plans of equal bits.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

// Bytes of one example of a value.
std::int64_t example_bytes(const ValueType& type);

// Per node, of those that a loop over examples could run: a product that is cheaper outside, with
// all rows of all replicas at once. A loop passes through all its weights for every tile of
// examples, which is for nothing while they stay in L2; where they do not, a product outside reads
// its weights once, but its operand and its result go through memory.
std::vector<bool> products_to_cut(const Graph& graph, const std::vector<bool>& in_loop);

}  // namespace samegrad
