#include "plan/buffers.h"

#include <algorithm>
#include <unordered_map>

#include "plan/root_uses.h"

namespace samegrad {
namespace {

class AliasingAnalysis {
 public:
  AliasingAnalysis(const PlanDraft& plan, bool in_place) : plan_(plan), in_place_(in_place) {
    const Graph& graph = plan.graph;
    last_read_.assign(graph.values.size(), StepId());
    writer_.assign(graph.values.size(), StepId());
    first_safe_ = plan.steps.next_id();
    while (first_safe_ > StepId(0) && !plan.steps[first_safe_ - 1].can_fail(plan)) --first_safe_;
    for (StepId s : plan.steps.ids()) {
      const BufferUses uses = plan.steps[s].uses(plan);
      for (Value root : uses.reads) last_read_[root] = s;
      for (Value root : uses.writes) writer_[root] = s;
    }
    old_values_ = old_values(plan);
    for (const StateWrite& write : graph.writes) {
      written_[root_of(write.value)].push_back(write.variable);
    }
    read_at_end_.assign(graph.values.size(), 0);
    for (Value output : graph.outputs) ++read_at_end_[root_of(output)];
    for (const StateWrite& write : graph.writes) ++read_at_end_[root_of(write.value)];
  }

  Aliasing decide(const StateWrite& write) const {
    const Value root = root_of(write.value), old = old_value_of(write.variable);
    if (root == old) return Aliasing::kNothing;
    // One step's result is one array: each of a variable's copies gets it when all steps are over.
    const bool has_copies = plan_.graph.variables[write.variable].components > 1;
    if (!has_copies && may_store_directly(root, old)) return Aliasing::kInPlace;
    return is_stored_elsewhere(old, write) ? Aliasing::kReplace : Aliasing::kCopy;
  }

 private:
  Value root_of(Value value) const { return plan_.root[value]; }

  // The variable's value when the program starts, or kNoValue if it has no reader.
  Value old_value_of(SlotId variable) const { return old_values_[variable]; }

  // True if the producer may store into the variable's memory. The new value then has no other
  // home, and no later step raises. Readers of the old value are earlier steps, or the producer
  // itself if it reads each element before it writes it.
  bool may_store_directly(Value root, Value old) const {
    const Node* producer = plan_.graph.producer(root);
    const StepId at = writer_[root];
    if (!in_place_ || !producer || !producer->op->has(kElementwise) || !at.exists()) return false;
    const StoreRule rule = plan_.steps[at].stores();
    if (rule == StoreRule::kNever) return false;
    if (plan_.storage[root] != Storage::kShared) return false;
    if (at < first_safe_ || read_at_end_[root] != 1) return false;
    if (old == kNoValue) return true;
    if (last_read_[old] > at || read_at_end_[old] != 0) return false;
    return rule == StoreRule::kWhenDone || overwrites(*producer, root, old);
  }

  // True if the node may write the value into the memory of the old one, which it may read.
  bool overwrites(const Node& node, Value root, Value old) const {
    if (!node.op->may_overwrite) return true;
    const auto result = std::size_t(std::ranges::find(node.outputs, root) - node.outputs.begin());
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (root_of(node.inputs[k]) != old) continue;
      if (!node.op->may_overwrite(node, k, result)) return false;
    }
    return true;
  }

  // True if another variable gets the old value, which must then exist until all are stored.
  bool is_stored_elsewhere(Value old, const StateWrite& write) const {
    const auto at = written_.find(old);
    return at != written_.end() && std::ranges::any_of(at->second, [&](SlotId variable) {
             return variable != write.variable;
           });
  }

  const PlanDraft& plan_;
  bool in_place_;
  StepId first_safe_;                                       // step from which on none can fail
  PerValue<StepId> last_read_;                              // of a root
  PerValue<StepId> writer_;                                 // of a root
  PerValue<int> read_at_end_;                               // of a root: by outputs and writes
  IndexedVector<SlotId, Value> old_values_;                 // what it is at the start, or kNoValue
  std::unordered_map<Value, std::vector<SlotId>> written_;  // per root: variables that get it
};

}  // namespace

std::vector<Aliasing> decide_stores(const PlanDraft& plan, bool in_place) {
  const AliasingAnalysis decider(plan, in_place);
  std::vector<Aliasing> stores;
  for (const StateWrite& write : plan.graph.writes) stores.push_back(decider.decide(write));
  return stores;
}

}  // namespace samegrad
