// Sums, over the iterations of a loop, of products over the examples.
#pragma once

#include "passes/loop_fission.h"
#include "runtime/execute_params.h"
#include "runtime/execution_context.h"

namespace samegrad {

// The entries of histories in an iteration, each once or once per replica.
using IterationEntries = std::vector<PerReplica<Array>>;

// Adds the products of the iterations, whose graph is `iteration`, to the sums, which are one
// array or one per replica, iteration by iteration: with the bits of iterations that run one after
// the other, but tile by tile of the sums. False, and nothing done, if an iteration has so many
// rows that its product is as well off by itself.
bool add_iteration_products(const Graph& iteration, const IterationSum& sum,
                            const std::vector<IterationEntries>& iterations,
                            const PerReplica<Array>& sums, ExecutionContext& context);

}  // namespace samegrad
