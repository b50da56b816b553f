// Sums, over the iterations of a loop, of products over the examples.
#pragma once

#include "passes/split_round_sums.h"
#include "runtime/call.h"
#include "runtime/context.h"

namespace samegrad {

// The entries of histories in an iteration, each once or once per replica.
using RoundEntries = std::vector<PerReplica<Array>>;

// Adds the products of the rounds, whose graph is `round`, to the sums, which are one array or one
// per replica, round by round: with the bits of rounds that run one after the other, but tile by
// tile of the sums. False, and nothing done, if a round has so many rows that its product is as
// well off by itself.
bool add_round_products(const Graph& round, const RoundSum& sum,
                        const std::vector<RoundEntries>& rounds, const PerReplica<Array>& sums,
                        Context& context);

}  // namespace samegrad
