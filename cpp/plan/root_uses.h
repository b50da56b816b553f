// The steps and results that use the memory of a root.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace samegrad {

struct Access {
  StepId step;
  bool reads, writes;
};

struct RootUses {
  std::vector<Access> accesses;  // one for each step that uses the root, in their order
  int outputs = 0, stored = 0;   // how many of the graph's outputs and writes it is
};

// `of_steps`: what each step reads and writes.
PerValue<RootUses> root_uses(const PlanDraft& plan, const std::vector<BufferUses>& of_steps);

// The root of each variable's value before the run; kNoValue: the graph does not read it.
IndexedVector<SlotId, Value> old_values(const PlanDraft& plan);

}  // namespace samegrad
