#include "plan/buffers.h"

#include <algorithm>
#include <unordered_map>

#include "plan/cost.h"

namespace samegrad {
namespace {

const std::vector<NodeId>& nodes_of(const Plan& plan, const PlanStep& step) {
  return step.kind == PlanStep::Kind::kLoop ? plan.loops[step.loop()].nodes : step.nodes;
}

// Sorted, each once.
void make_set(std::vector<Value>& values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

class Decider {
 public:
  Decider(const Plan& plan, bool in_place) : plan_(plan), in_place_(in_place) {
    const Graph& graph = plan.graph;
    last_read_.assign(graph.values.size(), StepId());
    writer_.assign(graph.values.size(), StepId());
    first_safe_ = plan.steps.next_id();
    while (first_safe_ > StepId(0) && is_safe(plan, plan.steps[first_safe_ - 1])) --first_safe_;
    for (StepId s : plan.steps.ids()) {
      const BufferUses uses = buffer_uses(plan, plan.steps[s]);
      for (Value root : uses.reads) last_read_[root] = s;
      for (Value root : uses.writes) writer_[root] = s;
    }
    old_values_.assign(graph.variables.size(), kNoValue);
    for (Value v : graph.values.ids().reversed()) {
      const ValueInfo& info = graph.values[v];
      if (info.source == Source::kVariable) old_values_[info.slot()] = v;
    }
    for (const StateWrite& write : graph.writes) {
      written_[root_of(write.value)].push_back(write.variable);
    }
    read_at_end_.assign(graph.values.size(), 0);
    for (Value output : graph.outputs) ++read_at_end_[root_of(output)];
    for (const StateWrite& write : graph.writes) ++read_at_end_[root_of(write.value)];
  }

  Store decide(const StateWrite& write) const {
    const Value root = root_of(write.value), old = old_value_of(write.variable);
    if (root == old) return Store::kNothing;
    // One step's result is one array: each of a variable's copies gets it when all steps are over.
    const bool has_copies = plan_.graph.variables[write.variable].components > 1;
    if (!has_copies && may_store_directly(root, old)) return Store::kInPlace;
    return is_stored_elsewhere(old, write) ? Store::kReplace : Store::kCopy;
  }

 private:
  Value root_of(Value value) const { return plan_.root[value]; }

  // The value that the variable has when the program starts, or kNoValue if nobody reads it.
  Value old_value_of(SlotId variable) const { return old_values_[variable]; }

  // The producer may store into the variable's memory: the new value has no other home, everyone
  // who reads the old one does so in an earlier step or is the producer itself, which is done with
  // an element before it writes that element, and no later step raises.
  bool may_store_directly(Value root, Value old) const {
    const Node* producer = plan_.graph.producer(root);
    const StepId at = writer_[root];
    if (!in_place_ || !producer || !producer->op->has(kElementwise) || !at.exists()) return false;
    const PlanStep::Kind kind = plan_.steps[at].kind;
    const bool by_rows = kind == PlanStep::Kind::kRowUpdate;
    const bool of_nodes = kind == PlanStep::Kind::kNode || kind == PlanStep::Kind::kNodes;
    if (!of_nodes && kind != PlanStep::Kind::kReduceUpdate && !by_rows) return false;
    if (plan_.storage[root] != Storage::kShared) return false;
    if (at < first_safe_ || read_at_end_[root] != 1) return false;
    if (old == kNoValue) return true;
    if (last_read_[old] > at || read_at_end_[old] != 0) return false;
    return by_rows || overwrites(*producer, root, old);  // results leave once rows are done
  }

  // Whether the node may write the value into the memory of the old one, which it may read.
  bool overwrites(const Node& node, Value root, Value old) const {
    if (!node.op->may_overwrite) return true;
    const auto result = std::size_t(std::ranges::find(node.outputs, root) - node.outputs.begin());
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (root_of(node.inputs[k]) != old) continue;
      if (!node.op->may_overwrite(node, k, result)) return false;
    }
    return true;
  }

  // Whether another variable gets the old value: it must still be there when all have been stored.
  bool is_stored_elsewhere(Value old, const StateWrite& write) const {
    const auto at = written_.find(old);
    return at != written_.end() && std::ranges::any_of(at->second, [&](SlotId variable) {
             return variable != write.variable;
           });
  }

  const Plan& plan_;
  bool in_place_;
  StepId first_safe_;                                       // step from which on none can fail
  PerValue<StepId> last_read_;                              // of a root
  PerValue<StepId> writer_;                                 // of a root
  PerValue<int> read_at_end_;                               // of a root: by outputs and writes
  IndexedVector<SlotId, Value> old_values_;                 // what it is at the start, or kNoValue
  std::unordered_map<Value, std::vector<SlotId>> written_;  // per root: variables that get it
};

}  // namespace

BufferUses buffer_uses(const Plan& plan, const PlanStep& step) {
  BufferUses uses;
  const auto add = [&](std::vector<Value>& list, Value value) { list.push_back(plan.root[value]); };
  for (NodeId n : nodes_of(plan, step)) {
    const Node& node = plan.graph.nodes[n];
    if (node.op->has(kAliases)) continue;  // shows bytes, touches none
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.op->reads(k)) add(uses.reads, node.inputs[k]);
    }
    for (Value output : node.outputs) add(uses.writes, output);
  }
  // A reduction of rows makes their values for itself, those too that an update leaves in memory.
  if (step.kind == PlanStep::Kind::kRowReduce) {
    const Value result = plan.root[plan.graph.nodes[step.nodes.back()].outputs[0]];
    std::erase_if(uses.reads, [&](Value root) {
      return std::ranges::find(uses.writes, root) != uses.writes.end();
    });
    uses.writes = {result};
  }
  // What passes between the nodes of a step block by block has no buffer.
  const auto unused = [&](Value root) { return plan.storage[root] == Storage::kUnused; };
  std::erase_if(uses.reads, unused);
  std::erase_if(uses.writes, unused);
  for (const Prepared& prepared : step.prepare) add(uses.reads, prepared.operand);
  make_set(uses.reads);
  make_set(uses.writes);
  return uses;
}

bool is_safe(const Plan& plan, const PlanStep& step) {
  const auto is = [&](PlanStep::Kind kind) { return step.kind == kind; };
  if (is(PlanStep::Kind::kAllReduce) || is(PlanStep::Kind::kReduceUpdate)) return true;
  if (is(PlanStep::Kind::kRowUpdate)) return true;
  if (!is(PlanStep::Kind::kNode) && !is(PlanStep::Kind::kNodes)) return false;
  return std::ranges::all_of(step.nodes, [&](NodeId n) {
    const Node& node = plan.graph.nodes[n];
    if (node.op->has(kAliases)) return true;
    return !may_raise(plan.graph, node) &&
           (node.op->has(kElementwise) || has_its_memory(plan.graph, node));
  });
}

std::vector<Store> decide_stores(const Plan& plan, bool in_place) {
  const Decider decider(plan, in_place);
  std::vector<Store> stores;
  for (const StateWrite& write : plan.graph.writes) stores.push_back(decider.decide(write));
  return stores;
}

}  // namespace samegrad
