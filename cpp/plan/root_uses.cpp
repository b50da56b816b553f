#include "plan/root_uses.h"

namespace samegrad {

IndexedVector<StepId, BufferUses> step_uses(const PlanDraft& plan) {
  IndexedVector<StepId, BufferUses> uses;
  for (const PlanStep& step : plan.steps) uses.push_back(step.uses(plan));
  return uses;
}

PerValue<RootUses> root_uses(const PlanDraft& plan, const IndexedVector<StepId, BufferUses>& uses) {
  PerValue<RootUses> found(plan.graph.values.size());
  for (StepId s : plan.steps.ids()) {
    const auto access = [&](Value root) -> Access& {
      std::vector<Access>& all = found[root].accesses;
      if (all.empty() || all.back().step != s) all.push_back({s, false, false});
      return all.back();
    };
    for (Value root : uses[s].reads) access(root).reads = true;
    for (Value root : uses[s].writes) access(root).writes = true;
  }
  for (Value output : plan.graph.outputs) ++found[plan.root[output]].outputs;
  for (const StateWrite& write : plan.graph.writes) ++found[plan.root[write.value]].stored;
  return found;
}

IndexedVector<SlotId, Value> old_values(const PlanDraft& plan) {
  IndexedVector<SlotId, Value> found(plan.graph.variables.size());
  for (Value v : plan.graph.values.ids().reversed()) {
    const ValueInfo& info = plan.graph.values[v];
    if (info.source == Source::kVariable) found[info.slot()] = plan.root[v];
  }
  return found;
}

}  // namespace samegrad
