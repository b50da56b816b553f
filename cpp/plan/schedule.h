// Cuts a graph into steps.
#pragma once

#include "plan/plan.h"

namespace samegrad {

// Fills steps and loops: loops over examples and, between them, whole nodes and collectives.
void schedule(Plan& plan, const PlanOptions& options);

// Marks the stretches of each loop that run one example at a time because what passes between their
// nodes would not fit into cache otherwise.
void form_inner_loops(Plan& plan, const PlanOptions& options);

// Joins the reductions of large gradients with their all-reduces and updates, once steps are known.
void fuse_updates(Plan& plan);

// Makes updates by rows of those that leave alone what has no gradient, once steps are known.
void find_row_updates(Plan& plan);

// Moves steps that write variables and cannot fail behind those that can, once storage is known.
void put_updates_last(Plan& plan);

// Joins small nodes between two steps of other kinds, once the order of steps is known.
void join_small_nodes(Plan& plan);

}  // namespace samegrad
