// Gradients of large weights, block by block of the weights: the tree over each replica's examples,
// the tree over the replicas, the update. What is between them stays in cache.
#pragma once

#include "runtime/execution_context.h"

namespace samegrad {

// True if ranks can divide the update of variables in common memory among them.
bool can_share(const UpdateBinding& binding, const WorldSums& world);

}  // namespace samegrad
