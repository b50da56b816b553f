// Sparse gradients as steps: their all-reduces and the nodes that work on them row by row, without
// an array of the variable's size.
#include <algorithm>
#include <map>
#include <set>

#include "base/thresholds.h"
#include "ops/attributes.h"
#include "ops/constant_propagation.h"
#include "plan/cost.h"
#include "plan/schedule.h"
#include "plan/sparse_program.h"

namespace samegrad {
namespace {

// Rows are copied one by one: these are long enough to be updated in place.
constexpr std::int64_t kMaxRowBytes = 64 << 10;

class SparseUpdateFinder {
 public:
  explicit SparseUpdateFinder(PlanDraft& plan)
      : plan_(plan), graph_(plan.graph), readers_(graph_.values.size()) {
    for (NodeId n : graph_.nodes.ids()) {
      for (Value input : graph_.nodes[n].inputs) {
        std::vector<NodeId>& readers = readers_[input];
        if (readers.empty() || readers.back() != n) {
          readers.push_back(n);
        }
      }
    }
    for (const StateWrite& write : graph_.writes) writes_[write.value].push_back(write.variable);
    shown_.assign(graph_.values.size(), false);
    for (Value output : graph_.outputs) shown_[output] = true;
    step_of_.assign(graph_.nodes.size(), StepId());
    for (StepId s : plan.steps.ids()) {
      for (NodeId n : plan.steps[s].nodes()) step_of_[n] = s;
    }
  }

  void run() {
    for (NodeId n : graph_.nodes.ids()) {
      const ExampleSum sum = sum_of(n);
      if (sum.result != kNoValue) sums_.emplace(sum.result, sum);
    }
    PerNode<bool> done(graph_.nodes.size(), false);
    for (const auto& [value, sum] : sums_) {
      SparseUpdate update;
      std::vector<NodeId> taken;
      if (done[sum.tree] || !grow(sum, update, taken)) continue;
      if (std::ranges::any_of(taken, [&](NodeId n) { return done[n]; })) continue;
      for (NodeId n : taken) done[n] = true;
      update.leaves_rows_alone = leaves_rows_alone(update);
      plan_.sparse_updates.push_back(std::move(update));
      taken_.push_back(std::move(taken));
    }
    if (!plan_.sparse_updates.empty()) replace_steps();
  }

 private:
  // The sum over all examples that begins with a node.
  ExampleSum sum_of(NodeId n) const {
    const Node& node = graph_.nodes[n];
    if (!node.op->rows || !is_step<NodeStep>(n)) return {};
    const Value result = node.outputs[0];
    const ValueType& type = graph_.type(result);
    if (type.batched() || type.shape.symbolic() || type.shape.size() == 0) return {};
    const std::int64_t bytes = example_bytes(type);
    const std::int64_t row = bytes / type.shape[0];
    if (bytes <= thresholds().deferred_bytes || row > kMaxRowBytes) return {};
    if (!can_touch_rows(node)) return {};
    if (!graph_.varying(result)) return {n, kNoNode, result};
    const std::vector<NodeId>& readers = readers_[result];
    if (readers.size() != 1 || !is_step<AllReduceStep>(readers[0])) return {};
    const Node& all_reduce = graph_.nodes[readers[0]];
    if (all_reduce.op->exchange || is_kept(result)) return {};
    return {n, readers[0], all_reduce.outputs[0]};
  }

  bool can_touch_rows(const Node& node) const {
    std::vector<View> example;
    bool batched = false;
    for (Value input : node.inputs) {
      const ValueType& type = graph_.type(input);
      if (type.shape.symbolic()) return false;
      batched |= type.batched();
      example.push_back(view_of_one(type));
    }
    // Without examples the rows of an axis are in their place.
    if (node.locality != Locality::kBatchReduction && batched) return false;
    return node.op->rows.applies(example, node.attrs);
  }

  static View view_of_one(const ValueType& type) {
    View view{nullptr, type.shape, type.dtype, type.batch.axis};
    if (type.batched()) view.shape[type.batch.axis] = type.batch.rows_per_example;
    return view;
  }

  template <class Kind>
  bool is_step(NodeId n) const {
    const StepId step = step_of_[n];
    return step.exists() && plan_.steps[step].is<Kind>();
  }

  // True if a result of the program or a variable gets the value.
  bool is_kept(Value value) const { return shown_[value] || writes_.contains(value); }

  // Takes all nodes that work on the sum row by row, the sums that they join it with, and the
  // reductions of what they make. False where something else reads one of the sums.
  bool grow(const ExampleSum& first, SparseUpdate& update, std::vector<NodeId>& all) const {
    update.sums = {first};
    const Shape& shape = graph_.type(first.result).shape;
    PerValue<bool> inside(graph_.values.size(), false);
    PerNode<bool> taken(graph_.nodes.size(), false);
    inside[first.result] = true;
    std::vector<Value> open{first.result};
    while (!open.empty()) {
      const Value value = open.back();
      open.pop_back();
      for (NodeId n : readers_[value]) {
        if (taken[n]) continue;
        if (is_reduction(n, shape)) {
          taken[n] = true;
          update.reductions.push_back({n, {}});
          continue;
        }
        if (!is_rowwise(n, shape)) {
          if (sums_.contains(value)) return false;
          continue;
        }
        taken[n] = true;
        const Node& node = graph_.nodes[n];
        for (Value output : node.outputs) {
          inside[output] = true;
          open.push_back(output);
        }
        for (Value input : node.inputs) {
          const auto sum = sums_.find(input);
          if (inside[input] || sum == sums_.end()) continue;
          inside[input] = true;
          update.sums.push_back(sum->second);
          open.push_back(input);
        }
      }
    }
    take_feeders(shape, taken);
    for (NodeId n : taken.ids()) {
      if (taken[n]) all.push_back(n);
    }
    if (!find_results(update, taken)) return false;
    make_passes(update, taken);
    for (const ExampleSum& sum : update.sums) {
      all.push_back(sum.tree);
      if (sum.all_reduce.exists()) all.push_back(sum.all_reduce);
    }
    return true;
  }

  // Includes row-by-row nodes that serve these nodes alone, like the decay of a moment. By
  // themselves they would pass over all rows first, and store them.
  void take_feeders(const Shape& shape, PerNode<bool>& taken) const {
    const auto feeds = [&](Value output) {
      const std::vector<NodeId>& readers = readers_[output];
      return !is_kept(output) && !readers.empty() &&
             std::ranges::all_of(readers, [&](NodeId reader) { return taken[reader]; });
    };
    for (NodeId n : graph_.nodes.ids().reversed()) {
      if (taken[n] || !std::ranges::all_of(graph_.nodes[n].outputs, feeds)) continue;
      taken[n] = is_rowwise(n, shape);
    }
  }

  // All elements of a value of the size of the variable to one number.
  bool is_reduction(NodeId n, const Shape& shape) const {
    const Node& node = graph_.nodes[n];
    if (!is_step<NodeStep>(n)) return false;
    if (node.op->block.kind != BlockFn::kReduce || node.locality == Locality::kBatchReduction)
      return false;
    const auto* attrs = node.attrs.get_if<ReduceAttrs>();
    return attrs && int(attrs->axes.size()) == shape.rank() && is_whole(node.inputs[0], shape) &&
           !graph_.varying(node.outputs[0]);
  }

  bool is_whole(Value value, const Shape& shape) const {
    const ValueType& type = graph_.type(value);
    return !type.batched() && !graph_.varying(value) && type.shape == shape;
  }

  // A node outside that works on values of the size of the variable, or numbers.
  bool is_rowwise(NodeId n, const Shape& shape) const {
    const Node& node = graph_.nodes[n];
    if (!is_step<NodeStep>(n) || !LatticeProgram::takes(node)) return false;
    if (may_raise(graph_, node)) return false;
    const auto whole = [&](Value value) { return is_whole(value, shape); };
    const auto fits = [&](Value value) { return whole(value) || is_scalar(value); };
    return std::ranges::all_of(node.outputs, whole) && std::ranges::all_of(node.inputs, fits);
  }

  bool is_scalar(Value value) const {
    const ValueType& type = graph_.type(value);
    return !type.batched() && !graph_.varying(value) && !type.shape.symbolic() &&
           type.shape.size() == 1;
  }

  // Lists the results that are read outside the update; false if one is read before its last node.
  bool find_results(SparseUpdate& update, const PerNode<bool>& taken) const {
    StepId last;
    for (NodeId n : taken.ids()) {
      if (taken[n] && !is_reduced_by(update, n)) last = std::max(last, step_of_[n]);
    }
    for (const ExampleSum& sum : update.sums) {
      if (is_kept(sum.result)) return false;
      for (NodeId n : readers_[sum.result]) {
        if (!taken[n]) return false;
      }
    }
    for (NodeId n : taken.ids()) {
      if (!taken[n] || is_reduced_by(update, n)) continue;
      for (Value output : graph_.nodes[n].outputs) {
        bool leaves = is_kept(output);
        for (NodeId reader : readers_[output]) {
          if (taken[reader]) continue;
          leaves = true;
          if (step_of_[reader] <= last) return false;
        }
        if (!leaves) continue;
        const auto write = writes_.find(output);
        const bool of_one = write != writes_.end() && write->second.size() == 1;
        update.results.push_back({output, of_one ? write->second[0] : SlotId()});
      }
    }
    return !update.results.empty() || !update.reductions.empty();
  }

  static bool is_reduced_by(const SparseUpdate& update, NodeId n) {
    return std::ranges::find(update.reductions, n, &SparseUpdate::Reduction::node) !=
           update.reductions.end();
  }

  // Each pass has what it needs of the nodes: they are cheaper than memory between the passes.
  void make_passes(SparseUpdate& update, const PerNode<bool>& taken) const {
    for (SparseUpdate::Reduction& reduction : update.reductions) {
      reduction.pass = pass_to({graph_.nodes[reduction.node].inputs[0]}, update, taken);
    }
    std::vector<Value> results;
    for (const SparseUpdate::UpdatedVariable& result : update.results)
      results.push_back(result.value);
    update.update = pass_to(std::move(results), update, taken);
  }

  SparsePass pass_to(std::vector<Value> open, const SparseUpdate& update,
                     const PerNode<bool>& taken) const {
    std::set<std::int32_t> sums;
    std::set<NodeId> nodes;
    while (!open.empty()) {
      const Value value = open.back();
      open.pop_back();
      const auto sum = std::ranges::find(update.sums, value, &ExampleSum::result);
      if (sum != update.sums.end()) {
        sums.insert(std::int32_t(sum - update.sums.begin()));
        continue;
      }
      const ValueInfo& info = graph_.values[value];
      if (info.source != Source::kNode || !taken[info.node()]) continue;
      if (is_reduced_by(update, info.node()) || !nodes.insert(info.node()).second) continue;
      const std::vector<Value>& inputs = graph_.nodes[info.node()].inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return {{sums.begin(), sums.end()}, {nodes.begin(), nodes.end()}};
  }

  // True if constants alone prove it, before all numbers are known; a run tries with those that it
  // has.
  bool leaves_rows_alone(const SparseUpdate& update) const {
    const SparseProgram program(graph_, update, update.update);
    std::vector<LatticeValue> registers(std::size_t(program.known.registers()));
    program.set_operands(registers, [&](std::size_t k) {
      const ValueInfo& info = graph_.values[program.numbers[k].value];
      if (info.source != Source::kConstant) return LatticeValue::some_number();
      return LatticeValue::number_at(graph_.constants[info.constant()].raw(), info.type.dtype);
    });
    return program.leaves_rows_alone(update, registers);
  }

  // The nodes of a pass with those that make its sums.
  static std::vector<NodeId> nodes_of(const SparseUpdate& update, const SparsePass& pass) {
    std::vector<NodeId> nodes;
    for (const std::int32_t s : pass.sums) {
      const ExampleSum& sum = update.sums[std::size_t(s)];
      nodes.push_back(sum.tree);
      if (sum.all_reduce.exists()) nodes.push_back(sum.all_reduce);
    }
    nodes.insert(nodes.end(), pass.nodes.begin(), pass.nodes.end());
    return nodes;
  }

  // The rows are named where the last sum was, reduced where the reductions were, and updated where
  // the last node was.
  void replace_steps() {
    PerNode<bool> taken(graph_.nodes.size(), false);
    IndexedVector<StepId, std::vector<PlanStep>> before(plan_.steps.size());
    for (SparseUpdateId u : plan_.sparse_updates.ids()) {
      const SparseUpdate& update = plan_.sparse_updates[u];
      for (NodeId n : taken_[u]) taken[n] = true;
      std::vector<NodeId> trees;
      StepId named, last;
      for (const ExampleSum& sum : update.sums) {
        trees.push_back(sum.tree);
        named = std::max(named, step_of_[sum.tree]);
      }
      before[named].push_back(SparseRowsStep(std::move(trees), u));
      for (const auto& [node, pass] : update.reductions) {
        std::vector<NodeId> nodes = nodes_of(update, pass);
        nodes.push_back(node);
        before[step_of_[node]].push_back(SparseReduceStep(std::move(nodes), u));
      }
      if (update.results.empty()) continue;
      SparseUpdateStep run(nodes_of(update, update.update), u);
      for (NodeId n : run.nodes) last = std::max(last, step_of_[n]);
      before[last].push_back(std::move(run));
    }
    replace_nodes(plan_, taken, before);
  }

  PlanDraft& plan_;
  const Graph& graph_;
  PerValue<std::vector<NodeId>> readers_;
  std::map<Value, std::vector<SlotId>> writes_;  // variables that get it
  PerValue<bool> shown_;                         // a result of the program
  PerNode<StepId> step_of_;
  std::map<Value, ExampleSum> sums_;                          // by result
  IndexedVector<SparseUpdateId, std::vector<NodeId>> taken_;  // nodes that leave their steps
};

}  // namespace

void find_sparse_updates(PlanDraft& plan) {
  SparseUpdateFinder(plan).run();
}

}  // namespace samegrad
