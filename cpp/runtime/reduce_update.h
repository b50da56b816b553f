// Gradients of large weights, block by block of the weights: the tree over each replica's examples,
// the tree over the replicas, the update. What is between them stays in cache.
#pragma once

#include "runtime/context.h"

namespace samegrad {

// Once nodes are bound.
UpdateBinding bind_update(const Plan& plan, const ReduceUpdate& step, const Context& context);

// Whether ranks can update what is in common memory by shares.
bool can_share(const UpdateBinding& binding, const WorldSums& world);

// Of Plan::updates.
void run_reduce_update(const Plan& plan, UpdateId update, const Call& call, Context& context);

}  // namespace samegrad
