// Reductions of large gradients, their all-reduces and the updates by them as one step.
#include <algorithm>

#include "base/thresholds.h"
#include "passes/rewrite.h"
#include "plan/cost.h"
#include "plan/schedule.h"

namespace samegrad {
namespace {

class UpdateFuser {
 public:
  explicit UpdateFuser(PlanDraft& plan)
      : plan_(plan),
        graph_(plan.graph),
        uses_(count_uses(graph_)),
        reader_(graph_.values.size()),
        taken_(graph_.nodes.size(), false) {
    for (NodeId n : graph_.nodes.ids()) {
      for (Value input : graph_.nodes[n].inputs) reader_[input] = n;
    }
    step_of_.assign(graph_.nodes.size(), StepId());
    for (StepId s : plan.steps.ids()) {
      if (plan.steps[s].is<LoopStep>()) continue;
      for (NodeId n : plan.steps[s].nodes()) step_of_[n] = s;
    }
  }

  void run() {
    for (NodeId n : graph_.nodes.ids()) {
      const ExampleSum sum = sum_of(n);
      if (sum.result != kNoValue) add(sum);
      if (sum.all_reduce.exists()) taken_[sum.all_reduce] = true;
    }
    if (!updates_.empty()) replace_steps();
  }

 private:
  // The sum that begins with a reduction over examples, or with what the replicas are given.
  ExampleSum sum_of(NodeId n) const {
    const Node& node = graph_.nodes[n];
    if (is_step<AllReduceStep>(n)) return given_sum_of(n);
    if (!is_step<NodeStep>(n) || node.locality != Locality::kBatchReduction) return {};
    const Value result = node.outputs[0];
    const bool blocks = !node.op->tree.finish && !may_raise(graph_, node) &&
                        !node.op->has(kScatters) && !graph_.type(result).shape.symbolic() &&
                        !graph_.type(result).batched();
    bool of_rows = true;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      of_rows = of_rows && (!node.op->reads(k) || graph_.type(node.inputs[k]).batched());
    }
    if (!blocks || !of_rows || uses_[result] != 1) return {};
    if (!graph_.varying(result)) return {n, kNoNode, result};
    const NodeId next = reader_[result];
    if (!next.exists() || !is_step<AllReduceStep>(next)) return {};
    const Node& all_reduce = graph_.nodes[next];
    if (all_reduce.op->exchange) return {};
    return {n, next, all_reduce.outputs[0]};
  }

  ExampleSum given_sum_of(NodeId n) const {
    const Node& node = graph_.nodes[n];
    if (node.op->exchange) return {};
    const ValueType& type = graph_.type(node.outputs[0]);
    const bool large = !type.batched() && !type.shape.symbolic() &&
                       example_bytes(type) > thresholds().deferred_bytes;
    return large && !taken_[n] ? ExampleSum{kNoNode, n, node.outputs[0]} : ExampleSum{};
  }

  template <class Kind>
  bool is_step(NodeId n) const {
    const StepId step = step_of_[n];
    return step.exists() && plan_.steps[step].is<Kind>();
  }

  // The elementwise node that alone reads the sum, or none.
  NodeId update_of(const ExampleSum& sum) const {
    const NodeId n = reader_[sum.result];
    if (uses_[sum.result] != 1 || !n.exists() || !is_step<NodeStep>(n)) {
      return kNoNode;
    }
    const Node& node = graph_.nodes[n];
    if (!is_profitable_to_fuse(graph_,
                               graph_.nodes[sum.tree.exists() ? sum.tree : sum.all_reduce])) {
      return kNoNode;
    }
    if (!node.op->has(kElementwise) || node.op->has(kWholeInnerAxes)) return kNoNode;
    if (may_raise(graph_, node)) return kNoNode;
    const Shape& shape = graph_.type(sum.result).shape;
    const auto is_whole = [&](Value value) {
      const ValueType& type = graph_.type(value);
      return !type.batched() && !graph_.varying(value) && type.shape == shape;
    };
    const auto fits = [&](Value value) {
      const ValueType& type = graph_.type(value);
      const bool number = !type.batched() && !type.shape.symbolic() && type.shape.size() == 1;
      return is_whole(value) || (number && !graph_.varying(value));
    };
    const bool all =
        std::ranges::all_of(node.outputs, is_whole) && std::ranges::all_of(node.inputs, fits);
    return all ? n : kNoNode;
  }

  void add(const ExampleSum& sum) {
    const NodeId update = update_of(sum);
    const auto same = std::ranges::find_if(updates_, [&](const FusedUpdate& other) {
      return update.exists() && other.update == update;
    });
    if (same != updates_.end()) {
      // One block serves all: they are cut alike.
      const ExampleSum& first = same->sums[0];
      if (op_of(first.tree) == op_of(sum.tree) &&
          op_of(first.all_reduce) == op_of(sum.all_reduce)) {
        same->sums.push_back(sum);
        return;
      }
    } else if (update.exists()) {
      updates_.push_back({{sum}, update});
      return;
    }
    if (sum.tree.exists() && sum.all_reduce.exists()) updates_.push_back({{sum}, kNoNode});
  }

  const OpDef* op_of(NodeId node) const { return node.exists() ? graph_.nodes[node].op : nullptr; }

  // Each takes the place of the last of its nodes; the others leave their steps.
  void replace_steps() {
    PerNode<bool> taken(graph_.nodes.size(), false);
    IndexedVector<StepId, std::vector<BlockUpdateStep>> begins(plan_.steps.size());
    for (FusedUpdate& update : updates_) {
      BlockUpdateStep step(std::move(update.sums), update.update);
      StepId last;
      for (NodeId n : step.nodes) {
        taken[n] = true;
        last = std::max(last, step_of_[n]);
      }
      begins[last].push_back(std::move(step));
    }
    replace_nodes(plan_, taken, begins);
  }

  struct FusedUpdate {
    std::vector<ExampleSum> sums;
    NodeId update;
  };

  PlanDraft& plan_;
  const Graph& graph_;
  PerValue<int> uses_;
  PerValue<NodeId> reader_;  // the last one, or none
  PerNode<bool> taken_;      // an all-reduce that a sum has
  PerNode<StepId> step_of_;  // none in loops
  std::vector<FusedUpdate> updates_;
};

}  // namespace

void fuse_updates(PlanDraft& plan) {
  UpdateFuser(plan).run();
}

}  // namespace samegrad
