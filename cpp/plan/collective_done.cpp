// Asynchronous all-reduces between processes: finds the step before which each one must be done.
#include <algorithm>

#include "plan/buffers.h"
#include "plan/root_uses.h"

namespace samegrad {
namespace {

class CollectiveDoneFinder {
 public:
  explicit CollectiveDoneFinder(const PlanDraft& plan)
      : plan_(plan),
        uses_(step_uses(plan)),
        readers_(plan.graph.values.size()),
        stored_(plan.graph.variables.size()) {
    PerValue<StepId> writer(plan.graph.values.size());
    for (StepId s : plan.steps.ids()) {
      for (Value root : uses_[s].reads) readers_[root].push_back(s);
      for (Value root : uses_[s].writes) writer[root] = s;
    }
    for (std::size_t w = 0; w < plan.graph.writes.size(); ++w) {
      const StateWrite& write = plan.graph.writes[w];
      if (plan.stores[w] != Aliasing::kInPlace) continue;
      stored_[write.variable] = writer[plan.root[write.value]];
    }
  }

  IndexedVector<StepId, StepId> run() const {
    IndexedVector<StepId, StepId> due(plan_.steps.size(), plan_.steps.next_id());
    StepId messages = plan_.steps.next_id();  // the next step that has some
    for (StepId s : plan_.steps.ids().reversed()) {
      const PlanStep& step = plan_.steps[s];
      const SumReads reads = step.reads_of_sums(plan_);
      if (reads) due[s] = std::min(messages, first_conflict(s, *reads));
      if (step.sends_messages(plan_)) messages = s;
    }
    return due;
  }

 private:
  // The first step that reads what the step takes, or overwrites what it reads then.
  StepId first_conflict(StepId step, const std::vector<Value>& reads) const {
    StepId first = plan_.steps.next_id();
    for (Value root : uses_[step].writes) {
      const auto reader = std::ranges::upper_bound(readers_[root], step);
      if (reader != readers_[root].end()) first = std::min(first, *reader);
    }
    for (Value root : reads) {
      const ValueInfo& info = plan_.graph.values[root];
      if (info.source != Source::kVariable) continue;
      const StepId stores = stored_[info.slot()];
      if (stores.exists() && stores > step) first = std::min(first, stores);
    }
    return first;
  }

  const PlanDraft& plan_;
  IndexedVector<StepId, BufferUses> uses_;
  PerValue<std::vector<StepId>> readers_;  // of a root, in order
  IndexedVector<SlotId, StepId> stored_;   // into whose memory a step stores
};

}  // namespace

IndexedVector<StepId, StepId> find_collective_done(const PlanDraft& plan) {
  return CollectiveDoneFinder(plan).run();
}

}  // namespace samegrad
