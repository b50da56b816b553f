// Costs of loops over the examples: what is cheaper outside of one.
#pragma once

#include "ir/graph.h"

namespace samegrad {

// Bytes of the weights that a product streams in a loop, or 0.
std::int64_t weight_bytes(const Graph& graph, const Node& node);

// Bytes of the weights that the products of these nodes stream in each tile.
std::int64_t streamed_weights(const Graph& graph, const PerNode<bool>& in_loop);

// Per node, of those that a loop over examples could run: a product that is cheaper outside, with
// all rows of all replicas at once. A loop passes through all its weights for every tile of
// examples, which is for nothing while they stay in L2; where they do not, a product outside reads
// its weights once, but its operand and its result go through memory.
PerNode<bool> products_to_group(const Graph& graph, const PerNode<bool>& in_loop);

// True if a reduction over the examples is cheaper after its loop, block by block of its result.
// Inside, all of the result passes through the cache with every leaf. Outside, the operands pass
// through memory.
bool is_cheaper_after_loop(const Graph& graph, const Node& node);

}  // namespace samegrad
