// Sinks stores: steps that write variables run after all that may fail, so that they write into the
// variables' memory. Steps that read their results and cannot fail follow them.
#include <algorithm>

#include "plan/buffers.h"
#include "plan/schedule.h"

namespace samegrad {

void sink_stores(PlanDraft& plan) {
  const Graph& graph = plan.graph;
  // By root: a variable gets it, or it is made of such a value by steps that cannot fail.
  PerValue<bool> late(graph.values.size(), false);
  for (const StateWrite& write : graph.writes) late[plan.root[write.value]] = true;
  for (const PlanStep& step : plan.steps) {
    const BufferUses uses = step.uses(plan);
    const bool reads = std::ranges::any_of(uses.reads, [&](Value root) { return late[root]; });
    if (!reads || step.can_fail(plan)) continue;
    for (Value root : uses.writes) late[root] = true;
  }
  PerValue<bool> needed(graph.values.size(), false);  // by root: a step that stays reads it
  IndexedVector<StepId, bool> moves(plan.steps.size(), false);
  for (StepId s : plan.steps.ids().reversed()) {
    const BufferUses uses = plan.steps[s].uses(plan);
    const auto any = [&](const PerValue<bool>& set) {
      return std::ranges::any_of(uses.writes, [&](Value root) { return set[root]; });
    };
    moves[s] = !plan.steps[s].can_fail(plan) && any(late) && !any(needed);
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
