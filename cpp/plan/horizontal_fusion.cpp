// Small operations that do not wait for each other, as the updates of many small variables are, as
// one step: what none of them is worth, a thread, all of them together may be.
#include <algorithm>
#include <map>

#include "base/thresholds.h"
#include "plan/buffers.h"
#include "plan/cost.h"
#include "plan/schedule.h"

namespace samegrad {
namespace {

class HorizontalFusion {
 public:
  explicit HorizontalFusion(PlanDraft& plan)
      : plan_(plan), read_(plan.graph.values.size(), -1), written_(plan.graph.values.size(), -1) {
    const Graph& graph = plan.graph;
    IndexedVector<SlotId, Value> old(graph.variables.size(), kNoValue);
    for (Value v : graph.values.ids()) {
      const ValueInfo& info = graph.values[v];
      if (info.source == Source::kVariable) old[info.slot()] = plan.root[v];
    }
    for (const StateWrite& write : graph.writes) {
      const Value before = old[write.variable];
      if (before != kNoValue) replaced_.emplace(plan.root[write.value], before);
    }
    last_ = plan.steps.next_id();
    while (last_ > StepId(0) && !plan.steps[last_ - 1].can_fail(plan)) --last_;
  }

  void run() {
    Steps steps;
    for (StepId begin(0); begin < plan_.steps.next_id();) {
      StepId end = begin;
      const StepId stop = begin < last_ ? last_ : plan_.steps.next_id();
      while (end < stop && is_small(plan_.steps[end])) ++end;
      if (begin < end) {
        join(begin, end, steps);
      } else {
        end = begin + 1;
        steps.push_back(std::move(plan_.steps[begin]));
      }
      begin = end;
    }
    plan_.steps = std::move(steps);
  }

 private:
  using Steps = IndexedVector<StepId, PlanStep>;

  // The bytes that a node without examples moves.
  std::int64_t bytes_of(const PlanStep& step) const {
    return std::int64_t(cost_of(plan_.graph, plan_.graph.nodes[step.nodes()[0]], {}).bytes());
  }

  std::int64_t bytes_of(const std::vector<StepId>& round) const {
    std::int64_t bytes = 0;
    for (StepId s : round) bytes += bytes_of(plan_.steps[s]);
    return bytes;
  }

  // One node that runs once and sees no examples.
  bool is_small(const PlanStep& step) const {
    if (!step.is<NodeStep>()) return false;
    const Graph& graph = plan_.graph;
    const Node& node = graph.nodes[step.nodes()[0]];
    if (node.op->has(Trait(kSideEffect | kControl | kCollective | kReplicaDependent))) return false;
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (Value value : *values) {
        const ValueType& type = graph.type(value);
        if (type.batched() || type.shape.symbolic() || graph.varying(value)) return false;
      }
    }
    return bytes_of(step) <= thresholds().parallel_operation_bytes;
  }

  // True if a step reads what the group has written, or writes what the group has touched. The
  // memory of variables counts as well.
  bool waits_for(std::int32_t round, const BufferUses& uses) const {
    bool waits =
        std::ranges::any_of(uses.reads, [&](Value root) { return written_[root] == round; });
    for_each_written(uses, [&](Value root) {
      waits = waits || written_[root] == round || read_[root] == round;
    });
    return waits;
  }

  template <class F>
  void for_each_written(const BufferUses& uses, const F& f) const {
    for (Value root : uses.writes) {
      f(root);
      const auto [first, last] = replaced_.equal_range(root);
      for (auto it = first; it != last; ++it) f(it->second);
    }
  }

  // In their order, which says how long values live.
  void join(StepId begin, StepId end, Steps& steps) {
    std::vector<StepId> round;
    for (StepId s : IdRange(begin, end)) {
      const BufferUses uses = plan_.steps[s].uses(plan_);
      if (waits_for(round_, uses)) {
        add_round(round, steps);
        round.clear();
        ++round_;
      }
      round.push_back(s);
      for (Value root : uses.reads) read_[root] = round_;
      for_each_written(uses, [&](Value root) { written_[root] = round_; });
    }
    add_round(round, steps);
    ++round_;
  }

  void add_round(const std::vector<StepId>& round, Steps& steps) const {
    if (round.size() == 1) {
      steps.push_back(std::move(plan_.steps[round[0]]));
      return;
    }
    SideBySideStep step;
    const bool shared = bytes_of(round) > thresholds().parallel_operation_bytes;
    std::int64_t bytes = 0;
    for (StepId s : round) {
      step.nodes.push_back(plan_.steps[s].nodes()[0]);
      bytes += bytes_of(plan_.steps[s]);
      const bool full = shared && bytes > thresholds().parallel_replica_bytes;
      if (!full && s != round.back()) continue;
      step.pieces.push_back(std::int32_t(step.nodes.size()));
      bytes = 0;
    }
    steps.push_back(std::move(step));
  }

  PlanDraft& plan_;
  PerValue<std::int32_t> read_, written_;  // by root: the last round that does it, or -1
  std::multimap<Value, Value> replaced_;   // by root: old values of the variables that get it
  std::int32_t round_ = 0;
  StepId last_;  // from which on none can fail
};

}  // namespace

void join_small_nodes(PlanDraft& plan) {
  HorizontalFusion(plan).run();
}

}  // namespace samegrad
