// Asynchronous all-reduces between processes: finds the step before which each one must be done.
#include <algorithm>

#include "plan/buffers.h"

namespace samegrad {
namespace {

bool is_exchange(const Plan& plan, NodeId node) {
  return plan.graph.nodes[node].op->exchange != nullptr;
}

// Whether the step has messages that are not sums of this plan.
bool has_messages(const Plan& plan, const PlanStep& step) {
  switch (step.kind) {
    case PlanStep::Kind::kNode:
    case PlanStep::Kind::kNodes:
    case PlanStep::Kind::kRows:
    case PlanStep::Kind::kLoop:
    case PlanStep::Kind::kReduceUpdate:
      return false;
    case PlanStep::Kind::kAllReduce:
      return std::ranges::any_of(step.nodes, [&](NodeId n) { return is_exchange(plan, n); });
    default:
      return true;
  }
}

class DueFinder {
 public:
  explicit DueFinder(const Plan& plan)
      : plan_(plan), readers_(plan.graph.values.size()), stored_(plan.graph.variables.size()) {
    PerValue<StepId> writer(plan.graph.values.size());
    for (StepId s : plan.steps.ids()) {
      uses_.push_back(buffer_uses(plan, plan.steps[s]));
      for (Value root : uses_[s].reads) readers_[root].push_back(s);
      for (Value root : uses_[s].writes) writer[root] = s;
    }
    for (std::size_t w = 0; w < plan.graph.writes.size(); ++w) {
      const StateWrite& write = plan.graph.writes[w];
      if (plan.stores[w] != Store::kInPlace) continue;
      stored_[write.variable] = writer[plan.root[write.value]];
    }
  }

  IndexedVector<StepId, StepId> run() const {
    IndexedVector<StepId, StepId> due(plan_.steps.size(), plan_.steps.next_id());
    StepId messages = plan_.steps.next_id();  // the next step that has some
    for (StepId s : plan_.steps.ids().reversed()) {
      const PlanStep& step = plan_.steps[s];
      if (has_sums(plan_, step)) due[s] = std::min(messages, first_conflict(s));
      if (has_messages(plan_, step)) messages = s;
    }
    return due;
  }

 private:
  // The first step that reads what the step takes, or overwrites what it reads then.
  StepId first_conflict(StepId step) const {
    StepId first = plan_.steps.next_id();
    for (Value root : uses_[step].writes) {
      const auto reader = std::ranges::upper_bound(readers_[root], step);
      if (reader != readers_[root].end()) first = std::min(first, *reader);
    }
    for (Value root : read_with_sums(plan_, plan_.steps[step])) {
      const ValueInfo& info = plan_.graph.values[root];
      if (info.source != Source::kVariable) continue;
      const StepId stores = stored_[info.slot()];
      if (stores.exists() && stores > step) first = std::min(first, stores);
    }
    return first;
  }

  const Plan& plan_;
  IndexedVector<StepId, BufferUses> uses_;
  PerValue<std::vector<StepId>> readers_;  // of a root, in order
  IndexedVector<SlotId, StepId> stored_;   // into whose memory a step stores
};

}  // namespace

bool has_sums(const Plan& plan, const PlanStep& step) {
  if (step.kind == PlanStep::Kind::kReduceUpdate) return plan.updates[step.update()].has_replicas();
  return step.kind == PlanStep::Kind::kAllReduce &&
         !std::ranges::all_of(step.nodes, [&](NodeId n) { return is_exchange(plan, n); });
}

std::vector<Value> read_with_sums(const Plan& plan, const PlanStep& step) {
  std::vector<Value> roots;
  if (step.kind != PlanStep::Kind::kReduceUpdate) return roots;
  const NodeId update = plan.updates[step.update()].update;
  if (!update.exists()) return roots;
  for (Value input : plan.graph.nodes[update].inputs) {
    const Value root = plan.root[input];
    if (plan.storage[root] != Storage::kUnused) roots.push_back(root);
  }
  return roots;
}

IndexedVector<StepId, StepId> find_sums_due(const Plan& plan) {
  return DueFinder(plan).run();
}

}  // namespace samegrad
