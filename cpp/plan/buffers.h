// Buffers: the memory that each step of a plan reads and writes, and its effect on variables.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace samegrad {

// Buffers are named by the values whose bytes they hold (Plan::root).
struct BufferUses {
  std::vector<Value> reads, writes;
};
BufferUses buffer_uses(const Plan& plan, const PlanStep& step);

// Whether nothing that the step does can fail: one that raises must leave the variables as they
// were, so nothing is stored into their memory before it.
bool is_safe(const Plan& plan, const PlanStep& step);

// Whether the step has sums over replicas, which may come from other processes while later steps
// run.
bool has_sums(const Plan& plan, const PlanStep& step);
// What a step reads when it takes the sums of all processes.
std::vector<Value> read_with_sums(const Plan& plan, const PlanStep& step);
// Plan::sums_due, once stores are known.
IndexedVector<StepId, StepId> find_sums_due(const Plan& plan);

// How each write of the graph reaches its variable, once steps, storage and roots are known.
std::vector<Store> decide_stores(const Plan& plan, bool in_place);

}  // namespace samegrad
