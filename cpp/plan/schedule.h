// Schedules a graph: divides its nodes into steps.
#pragma once

#include "plan/plan.h"

namespace samegrad {

// Fills steps: loops over examples and, between them, whole nodes and collectives.
void schedule(PlanDraft& plan, const PlanOptions& options);

// Marks the stretches of each loop that run one example at a time because what passes between their
// nodes would not fit into cache otherwise.
void form_inner_loops(PlanDraft& plan, const PlanOptions& options);

// Joins the reductions of large gradients with their all-reduces and updates, once steps are known.
void fuse_updates(PlanDraft& plan);

// Makes updates by rows of those that leave alone what has no gradient, once steps are known.
void find_sparse_updates(PlanDraft& plan);

// Inserts steps before others, takes nodes out of their steps, and drops the steps that are left
// without nodes.
template <class Step>
void replace_nodes(PlanDraft& plan, const PerNode<bool>& taken,
                   IndexedVector<StepId, std::vector<Step>>& before) {
  IndexedVector<StepId, PlanStep> steps;
  for (StepId s : plan.steps.ids()) {
    for (Step& step : before[s]) steps.push_back(std::move(step));
    PlanStep& step = plan.steps[s];
    std::erase_if(step.base().nodes, [&](NodeId n) { return taken[n]; });
    if (!step.nodes().empty()) steps.push_back(std::move(step));
  }
  plan.steps = std::move(steps);
}

// Moves steps that write variables and cannot fail behind those that can, once storage is known.
void sink_stores(PlanDraft& plan);

// Joins small nodes between two steps of other kinds, once the order of steps is known.
void join_small_nodes(PlanDraft& plan);

// Marks the prepacked operands that the iterations of a loop share: the body reads arguments from
// `first_operand` on that are the same in all iterations.
void keep_prepacked(PlanDraft& body, std::size_t first_operand);

}  // namespace samegrad
