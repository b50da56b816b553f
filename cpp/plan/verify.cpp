// Verifies plans by the definitions of their tables, not by the code that fills them.
#include "plan/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "plan/buffers.h"
#include "plan/root_uses.h"

namespace samegrad {
namespace {

// The steps that touch a value: none before the first use.
struct Uses {
  StepId first, last;
};

class PlanVerifier {
 public:
  explicit PlanVerifier(const PlanDraft& plan) : plan_(plan), graph_(plan.graph) {}

  void run(PlanStage stage);
  void check_nodes();
  void check_order();
  void check_roots();
  void check_storage();
  void check_tiles();
  void check_prepacked();
  void check_inner_values();
  void check_inner_loops(StepId s, const LoopStep& loop);
  void check_in_place();
  void check_copies();
  void check_failures();
  void check_sums();
  void check_live_ranges();
  void check_shared_memory();

  const char* rule = "";

 private:
  template <class... ParallelPartition>
  void require(bool ok, const ParallelPartition&... said) const {
    if (!ok) fail(ErrorKind::kValue, "plan", rule, ": ", said...);
  }

  bool is_view(NodeId n) const { return graph_.nodes[n].op->has(kAliases); }

  // The value whose bytes a chain of views shows.
  Value origin_of(Value v) const {
    while (graph_.values[v].source == Source::kNode && is_view(graph_.values[v].node())) {
      v = graph_.nodes[graph_.values[v].node()].inputs[0];
    }
    return v;
  }
  bool is_made(Value v) const { return graph_.values[v].source == Source::kNode; }

  template <class F>
  void for_each_read(NodeId n, const F& f) const {
    const Node& node = graph_.nodes[n];
    if (is_view(n)) return;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.op->reads(k)) f(node.inputs[k]);
    }
  }

  template <class F>
  void for_each_result(const F& f) const {
    for (Value output : graph_.outputs) f(output);
    for (const StateWrite& write : graph_.writes) f(write.value);
  }

  PerNode<bool> needed_nodes() const;
  // Return the step of each node, one number for all steps of a sparse update; -1: no step.
  PerNode<std::int64_t> owners() const;
  std::vector<Value> made_by(const PlanStep& step) const;
  bool may_lie_on(NodeId n, Value result, Value operand_root) const;
  bool others_read(const PlanStep& step, NodeId writer, Value root) const;
  void check_store_in_place(const StateWrite& write);
  PerValue<bool> arena_values() const;
  PerValue<Uses> uses() const;

  const PlanDraft& plan_;
  const Graph& graph_;
  // These tables are filled from PlanStage::kPrepacked on.
  IndexedVector<StepId, BufferUses> step_uses_;
  PerValue<RootUses> root_uses_;
  IndexedVector<SlotId, Value> old_values_;
};

constexpr struct {
  const char* name;
  PlanStage from;
  void (PlanVerifier::*check)();
} kRules[] = {
    {"each node is in exactly one step", PlanStage::kSteps, &PlanVerifier::check_nodes},
    {"each read has an earlier write", PlanStage::kSteps, &PlanVerifier::check_order},
    {"a view has the root of its operand", PlanStage::kRoots, &PlanVerifier::check_roots},
    {"storage is that of the root", PlanStage::kStorage, &PlanVerifier::check_storage},
    {"a value without a buffer is read where it is made", PlanStage::kStorage,
     &PlanVerifier::check_tiles},
    {"each prepared operand has a slot", PlanStage::kPrepacked, &PlanVerifier::check_prepacked},
    {"a value of an inner loop is used in that loop alone", PlanStage::kInnerLoops,
     &PlanVerifier::check_inner_values},
    {"an in-place writer comes last among the readers", PlanStage::kStores,
     &PlanVerifier::check_in_place},
    {"no write is copied over a value that another one copies", PlanStage::kStores,
     &PlanVerifier::check_copies},
    {"nothing may fail after the first store", PlanStage::kStores, &PlanVerifier::check_failures},
    {"sums are complete before they are read", PlanStage::kCollectiveDone,
     &PlanVerifier::check_sums},
    {"live ranges cover uses", PlanStage::kLiveRanges, &PlanVerifier::check_live_ranges},
    {"no two live values share memory", PlanStage::kLiveRanges, &PlanVerifier::check_shared_memory},
};

void PlanVerifier::run(PlanStage stage) {
  if (stage >= PlanStage::kPrepacked) {
    step_uses_ = step_uses(plan_);
    root_uses_ = root_uses(plan_, step_uses_);
    old_values_ = old_values(plan_);
  }
  for (const auto& [name, from, check] : kRules) {
    if (stage < from) continue;
    rule = name;
    (this->*check)();
  }
}

// Nodes that outputs, variables or side effects depend on.
PerNode<bool> PlanVerifier::needed_nodes() const {
  PerValue<bool> read(graph_.values.size(), false);
  for_each_result([&](Value v) { read[v] = true; });
  PerNode<bool> needed(graph_.nodes.size(), false);
  for (NodeId n : graph_.nodes.ids().reversed()) {
    const Node& node = graph_.nodes[n];
    needed[n] = node.op->has(kSideEffect) ||
                std::ranges::any_of(node.outputs, [&](Value output) { return read[output]; });
    if (!needed[n]) continue;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.op->reads(k)) read[node.inputs[k]] = true;
    }
  }
  return needed;
}

PerNode<std::int64_t> PlanVerifier::owners() const {
  PerNode<std::int64_t> owner(graph_.nodes.size(), -1);
  for (StepId s : plan_.steps.ids()) {
    const PlanStep& step = plan_.steps[s];
    const SparseUpdateId update = step.sparse_update();
    const bool rows = update.exists();
    const auto own =
        rows ? std::int64_t(plan_.steps.size()) + update.number() : std::int64_t(s.number());
    std::set<NodeId> seen;
    for (NodeId n : step.nodes()) {
      require(seen.insert(n).second, "step ", s, " has node ", n, " twice.");
      require(owner[n] < 0 || (rows && owner[n] == own), graph_.nodes[n].op->name, " (node ", n,
              ") is in step ", s, " and in an earlier one.");
      owner[n] = own;
    }
  }
  return owner;
}

void PlanVerifier::check_nodes() {
  const PerNode<bool> needed = needed_nodes();
  const PerNode<std::int64_t> owner = owners();
  for (NodeId n : graph_.nodes.ids()) {
    require(owner[n] >= 0 || !needed[n] || is_view(n), graph_.nodes[n].op->name, " (node ", n,
            ") is in no step.");
  }
}

// The values that later steps may read.
std::vector<Value> PlanVerifier::made_by(const PlanStep& step) const {
  std::vector<Value> made;
  if (step.is<SparseRowsStep>()) return made;
  if (step.is<SparseUpdateStep>()) {
    for (const auto& result : plan_.sparse_updates[step.sparse_update()].results) {
      made.push_back(result.value);
    }
    return made;
  }
  for (NodeId n : step.nodes()) {
    if (step.is<SparseReduceStep>() && n != step.nodes().back()) continue;
    const Node& node = graph_.nodes[n];
    made.insert(made.end(), node.outputs.begin(), node.outputs.end());
  }
  return made;
}

void PlanVerifier::check_order() {
  PerValue<bool> made(graph_.values.size(), false);
  for (Value v : made.ids()) made[v] = !is_made(v);
  for (StepId s : plan_.steps.ids()) {
    const PlanStep& step = plan_.steps[s];
    PerValue<bool> here = made;
    // Nodes that run side by side see nothing of each other.
    const bool in_turn = !step.is<SideBySideStep>() && !step.is<AllReduceStep>();
    for (NodeId n : step.nodes()) {
      for_each_read(n, [&](Value v) {
        require(here[origin_of(v)], "step ", s, " (", graph_.nodes[n].op->name, ") reads %", v,
                ", which nothing has written yet.");
      });
      if (!in_turn) continue;
      for (Value output : graph_.nodes[n].outputs) here[output] = true;
    }
    for (Value v : made_by(step)) made[v] = true;
  }
  for_each_result([&](Value v) {
    require(made[origin_of(v)], "%", v, " is a result, and no step writes it.");
  });
}

void PlanVerifier::check_roots() {
  for (Value v : graph_.values.ids()) {
    const Value root = plan_.root[v], origin = origin_of(v);
    const ValueInfo &a = graph_.values[root], &b = graph_.values[origin];
    const bool same_variable =
        a.source == Source::kVariable && b.source == Source::kVariable && a.slot() == b.slot();
    require(root == origin || same_variable, "%", v, " has root %", root, " and the bytes of %",
            origin, ".");
    require(plan_.root[root] == root, "%", root, " is a root and has root %", plan_.root[root],
            ".");
  }
}

void PlanVerifier::check_storage() {
  for (Value v : graph_.values.ids()) {
    const Value root = plan_.root[v];
    const Storage storage = plan_.storage[v];
    require(storage == plan_.storage[root], "%", v, " and its root %", root, " differ.");
    require((storage == Storage::kExternal) == !is_made(root), "%", v, " is ",
            is_made(root) ? "made by a node" : "given", ".");
    const Storage whole = graph_.varying(root) ? Storage::kReplica : Storage::kShared;
    require((storage != Storage::kReplica && storage != Storage::kShared) || storage == whole, "%",
            v, " has one copy", whole == Storage::kShared ? " per replica" : "", ".");
  }
}

// A value of a tile, or one that passes from node to node, exists in one loop or step.
void PlanVerifier::check_tiles() {
  const PerNode<std::int64_t> owner = owners();
  const auto has_buffer = [&](Value root) {
    return plan_.storage[root] != Storage::kTile && plan_.storage[root] != Storage::kUnused;
  };
  for (NodeId n : graph_.nodes.ids()) {
    if (owner[n] < 0) continue;
    for_each_read(n, [&](Value v) {
      const Value root = plan_.root[v];
      if (has_buffer(root)) return;
      const std::int64_t maker = owner[graph_.values[root].node()];
      require(maker == owner[n], "node ", n, " (", graph_.nodes[n].op->name, ") reads %", v,
              ", which exists in another step alone.");
    });
  }
  for_each_result([&](Value v) { require(has_buffer(plan_.root[v]), "%", v, " is a result."); });
}

void PlanVerifier::check_prepacked() {
  std::vector<bool> taken(std::size_t(plan_.prepacked_slots), false);
  for (StepId s : plan_.steps.ids()) {
    for (const Prepacked& prepacked : plan_.steps[s].prepack()) {
      const bool valid = prepacked.slot >= 0 && prepacked.slot < plan_.prepacked_slots;
      require(valid && !taken[std::size_t(prepacked.slot)], "slot ", prepacked.slot, " of ",
              plan_.prepacked_slots, " is taken or does not exist.");
      taken[std::size_t(prepacked.slot)] = true;
      require(plan_.prepacked_slot[prepacked.node] == prepacked.slot, "node ", prepacked.node,
              " reads slot ", plan_.prepacked_slot[prepacked.node], ", not ", prepacked.slot, ".");
      require(!std::ranges::count(step_uses_[s].writes, plan_.root[prepacked.operand]), "step ", s,
              " writes %", prepacked.operand, ", which is prepared before it.");
    }
  }
  const auto missing = std::ranges::find(taken, false);
  require(missing == taken.end(), "slot ", missing - taken.begin(), " is never prepared.");
}

void PlanVerifier::check_inner_values() {
  for (Value v : graph_.values.ids()) {
    require(plan_.inner_value[v] == plan_.inner_value[plan_.root[v]], "%", v, " and its root %",
            plan_.root[v], " differ.");
  }
  for (StepId s : plan_.steps.ids()) {
    if (const auto* loop = plan_.steps[s].get_if<LoopStep>()) check_inner_loops(s, *loop);
  }
}

void PlanVerifier::check_inner_loops(StepId s, const LoopStep& loop) {
  std::vector<int> stretch(loop.nodes.size(), -1);
  std::int32_t end = 0;
  for (std::size_t i = 0; i < loop.inner.size(); ++i) {
    const LoopStep::Inner& inner = loop.inner[i];
    require(inner.begin >= end && inner.begin < inner.end &&
                inner.end <= std::int32_t(loop.nodes.size()),
            "loop ", s, " has nodes [", inner.begin, ", ", inner.end, ") after ", end, ".");
    end = inner.end;
    std::fill(stretch.begin() + inner.begin, stretch.begin() + inner.end, int(i));
  }
  require(loop.tile_examples > 0, "loop ", s, " has tiles of ", loop.tile_examples, ".");
  std::map<Value, int> inside;  // by root
  for (std::size_t p = 0; p < loop.nodes.size(); ++p) {
    const auto touch = [&](Value v) {
      const Value root = plan_.root[v];
      if (plan_.storage[root] != Storage::kTile || !plan_.inner_value[root]) return;
      const int there = inside.emplace(root, stretch[p]).first->second;
      require(stretch[p] >= 0 && there == stretch[p], "node ", loop.nodes[p], " uses %", v,
              " outside.");
    };
    for_each_read(loop.nodes[p], touch);
    std::ranges::for_each(graph_.nodes[loop.nodes[p]].outputs, touch);
  }
}

// True if a node may write its result over an operand that it reads.
bool PlanVerifier::may_lie_on(NodeId n, Value result, Value operand_root) const {
  const Node& node = graph_.nodes[n];
  if (!node.op->has(kElementwise)) return false;
  const auto at = std::size_t(std::ranges::find(node.outputs, result) - node.outputs.begin());
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!node.op->reads(k) || plan_.root[node.inputs[k]] != operand_root) continue;
    if (graph_.type(node.inputs[k]).shape.size() != graph_.type(result).shape.size()) return false;
    if (node.op->may_overwrite && !node.op->may_overwrite(node, k, at)) return false;
  }
  return true;
}

// True if a node that runs in parallel with another one reads a value.
bool PlanVerifier::others_read(const PlanStep& step, NodeId writer, Value root) const {
  return std::ranges::any_of(step.nodes(), [&](NodeId n) {
    bool reads = false;
    for_each_read(n, [&](Value v) { reads = reads || plan_.root[v] == root; });
    return n != writer && reads;
  });
}

void PlanVerifier::check_in_place() {
  for (std::size_t w = 0; w < graph_.writes.size(); ++w) {
    if (plan_.stores[w] == Aliasing::kInPlace) check_store_in_place(graph_.writes[w]);
  }
}

void PlanVerifier::check_store_in_place(const StateWrite& write) {
  const Value root = plan_.root[write.value], old = old_values_[write.variable];
  const std::string& name = graph_.variables[write.variable].name;
  const int homes = root_uses_[root].outputs + root_uses_[root].stored;
  require(homes == 1, name, " gets %", write.value, ", which has ", homes, " homes.");
  require(old == kNoValue || root_uses_[old].outputs + root_uses_[old].stored == 0, name,
          " is written in place, and its old value is a result.");
  StepId writer;
  for (const Access& access : root_uses_[root].accesses) {
    require(!access.writes || !writer.exists(), name, " is written by several steps.");
    if (access.writes) writer = access.step;
  }
  require(writer.exists(), name, " is written in place, and no step writes %", write.value, ".");
  if (old == kNoValue) return;
  const NodeId node = graph_.values[root].node();
  for (const Access& access : root_uses_[old].accesses) {
    if (!access.reads) continue;
    require(access.step <= writer, name, " is written in place before step ", access.step,
            " reads its old value.");
    const PlanStep& step = plan_.steps[access.step];
    const bool rows = step.is<SparseUpdateStep>();  // stores when rows are done
    require(access.step != writer || rows ||
                (may_lie_on(node, root, old) && !others_read(step, node, old)),
            name, " is written in place by step ", access.step,
            ", which reads elements after writing them.");
  }
}

void PlanVerifier::check_copies() {
  for (std::size_t w = 0; w < graph_.writes.size(); ++w) {
    if (plan_.stores[w] != Aliasing::kCopy) continue;
    const Value old = old_values_[graph_.writes[w].variable];
    if (old == kNoValue) continue;
    const int itself = plan_.root[graph_.writes[w].value] == old;
    require(root_uses_[old].stored == itself, graph_.variables[graph_.writes[w].variable].name,
            " is copied over, and its old value is that of another variable.");
  }
}

void PlanVerifier::check_failures() {
  std::set<Value> stored;
  for (std::size_t w = 0; w < graph_.writes.size(); ++w) {
    if (plan_.stores[w] == Aliasing::kInPlace) stored.insert(plan_.root[graph_.writes[w].value]);
  }
  StepId first;
  for (StepId s : plan_.steps.ids()) {
    const std::vector<Value>& writes = step_uses_[s].writes;
    const bool stores = std::ranges::any_of(writes, [&](Value v) { return stored.contains(v); });
    if (stores && !first.exists()) first = s;
    require(!first.exists() || !plan_.steps[s].can_fail(plan_), "step ", s, " may fail, and step ",
            first, " stores into a variable.");
  }
}

void PlanVerifier::check_sums() {
  for (StepId s : plan_.steps.ids()) {
    const StepId due = plan_.collective_done[s];
    require(due > s, "those of step ", s, " are awaited at step ", due, ".");
    if (!plan_.steps[s].reads_of_sums(plan_)) continue;
    for (Value root : step_uses_[s].writes) {
      for (const auto& [later, reads, writes] : root_uses_[root].accesses) {
        require(!reads || later <= s || later >= due, "step ", later, " reads %", root,
                ", which step ", s, " sums until step ", due, ".");
      }
    }
  }
}

// Roots with memory of the arena: not those of outputs and of writes in place.
PerValue<bool> PlanVerifier::arena_values() const {
  PerValue<bool> in_arena(graph_.values.size(), false);
  for (Value v : in_arena.ids()) {
    const Storage storage = plan_.storage[v];
    in_arena[v] = plan_.root[v] == v && is_made(v) &&
                  (storage == Storage::kReplica || storage == Storage::kShared);
  }
  for (Value output : graph_.outputs) in_arena[plan_.root[output]] = false;
  for (std::size_t w = 0; w < plan_.stores.size(); ++w) {
    if (plan_.stores[w] == Aliasing::kInPlace) in_arena[plan_.root[graph_.writes[w].value]] = false;
  }
  return in_arena;
}

PerValue<Uses> PlanVerifier::uses() const {
  PerValue<Uses> uses(graph_.values.size());
  for (Value root : uses.ids()) {
    const std::vector<Access>& accesses = root_uses_[root].accesses;
    if (!accesses.empty()) uses[root] = {accesses.front().step, accesses.back().step};
  }
  const auto use = [&](Value root, StepId s) {
    Uses& of = uses[root];
    of.first = of.first.exists() ? std::min(of.first, s) : s;
    of.last = std::max(of.last, s);
  };
  for (StepId s : plan_.steps.ids()) {
    const SumReads reads = plan_.steps[s].reads_of_sums(plan_);
    if (!reads) continue;
    for (Value root : step_uses_[s].writes) use(root, plan_.collective_done[s]);
    for (Value root : *reads) use(root, plan_.collective_done[s]);
  }
  for (const StateWrite& write : graph_.writes) use(plan_.root[write.value], plan_.steps.next_id());
  return uses;
}

void PlanVerifier::check_live_ranges() {
  const PerValue<bool> in_arena = arena_values();
  const PerValue<Uses> used = uses();
  for (Value v : graph_.values.ids()) {
    const LiveRange& life = plan_.live_ranges[v];
    const bool live_ranges = in_arena[v] && used[v].first.exists();
    require(life.home.exists() == live_ranges, "%", v, live_ranges ? " has no" : " has",
            " memory of a run.");
    if (!live_ranges) continue;
    require(life.first <= used[v].first && used[v].last <= life.last, "%", v, " is used in steps ",
            used[v].first, " to ", used[v].last, " and lives in ", life.first, " to ", life.last,
            ".");
    const LiveRange& home = plan_.live_ranges[life.home];
    require(home.home == life.home && home.first <= life.first && life.last <= home.last, "%", v,
            " is in the memory of %", life.home, ", which does not last as long.");
  }
}

void PlanVerifier::check_shared_memory() {
  const PerValue<Uses> used = uses();
  std::map<Value, std::vector<Value>> sharing;
  for (Value v : graph_.values.ids()) {
    if (plan_.live_ranges[v].home.exists()) sharing[plan_.live_ranges[v].home].push_back(v);
  }
  for (auto& [home, values] : sharing) {
    std::ranges::stable_sort(values, {}, [&](Value v) { return used[v].first; });
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const Value a = values[i], b = values[i + 1];
      const StepId last = used[a].last, first = used[b].first;
      const bool turns = first.exists() && plan_.steps.contains(first) &&
                         plan_.steps[first].is<NodeStep>() &&
                         graph_.values[b].node() == plan_.steps[first].nodes()[0] &&
                         may_lie_on(graph_.values[b].node(), b, a);
      require(last < first || (last == first && turns), "%", a, " is used until step ", last,
              " and %", b, ", which has its memory, from step ", first, ".");
    }
  }
}

}  // namespace

void verify(const PlanDraft& plan, PlanStage stage) {
  PlanVerifier(plan).run(stage);
}

std::vector<std::string> plan_rules() {
  std::vector<std::string> names;
  for (const auto& rule : kRules) names.emplace_back(rule.name);
  return names;
}

}  // namespace samegrad
