// Tables of the steps and results that use each root.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace samegrad {

// The access of a step to a root.
struct Access {
  StepId step;
  bool reads, writes;
};

struct RootUses {
  std::vector<Access> accesses;  // one for each step that uses the root, in their order
  int outputs = 0, stored = 0;   // how many of the graph's outputs and writes it is
};

// Returns what each step reads and writes.
IndexedVector<StepId, BufferUses> step_uses(const PlanDraft& plan);

// Returns the uses of each root; `uses` is that of step_uses().
PerValue<RootUses> root_uses(const PlanDraft& plan, const IndexedVector<StepId, BufferUses>& uses);

// Returns the root of each variable's value before the run; kNoValue where the graph reads none.
IndexedVector<SlotId, Value> old_values(const PlanDraft& plan);

}  // namespace samegrad
