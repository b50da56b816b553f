// Decides how results reach variables, and by when sums of other processes must have arrived.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace samegrad {

// PlanDraft::collective_done, once stores are known.
IndexedVector<StepId, StepId> find_collective_done(const PlanDraft& plan);

// Decides how each write of the graph reaches its variable, from the steps, storage and alias
// roots.
std::vector<Aliasing> decide_stores(const PlanDraft& plan, bool in_place);

}  // namespace samegrad
