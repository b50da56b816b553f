// Decides how results reach variables, and by when sums of other processes must have arrived.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace samegrad {

// PlanDraft::sums_due, once stores are known.
IndexedVector<StepId, StepId> find_sums_due(const PlanDraft& plan);

// Decides how each write of the graph reaches its variable, from the steps, storage and alias
// roots.
std::vector<Store> decide_stores(const PlanDraft& plan, bool in_place);

}  // namespace samegrad
