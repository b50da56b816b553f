// Steps that write variables come after all that may fail, so that they write into their memory.
#include <algorithm>

#include "plan/buffers.h"
#include "plan/schedule.h"

namespace samegrad {

void put_updates_last(Plan& plan) {
  const Graph& graph = plan.graph;
  PerValue<bool> written(graph.values.size(), false);  // by root: a variable gets it
  for (const StateWrite& write : graph.writes) {
    written[plan.root[write.value]] = true;
  }
  PerValue<bool> needed(graph.values.size(), false);  // by root: a step that stays reads it
  IndexedVector<StepId, bool> moves(plan.steps.size(), false);
  for (StepId s : plan.steps.ids().reversed()) {
    const BufferUses uses = buffer_uses(plan, plan.steps[s]);
    const auto any = [&](const PerValue<bool>& set) {
      return std::ranges::any_of(uses.writes, [&](Value root) { return set[root]; });
    };
    moves[s] = is_safe(plan, plan.steps[s]) && any(written) && !any(needed);
    if (moves[s]) continue;
    for (Value root : uses.reads) needed[root] = true;
  }
  IndexedVector<StepId, PlanStep> steps;
  for (const bool moving : {false, true}) {
    for (StepId s : moves.ids()) {
      if (moves[s] == moving) steps.push_back(std::move(plan.steps[s]));
    }
  }
  plan.steps = std::move(steps);
}

}  // namespace samegrad
