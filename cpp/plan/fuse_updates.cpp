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
  explicit UpdateFuser(Plan& plan)
      : plan_(plan),
        graph_(plan.graph),
        uses_(count_uses(graph_)),
        reader_(graph_.values.size(), -1),
        taken_(graph_.nodes.size(), false) {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (Value input : graph_.nodes[n].inputs) reader_[std::size_t(input)] = std::int32_t(n);
    }
    step_of_.assign(graph_.nodes.size(), -1);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      for (std::int32_t n : plan.steps[s].nodes) step_of_[std::size_t(n)] = std::int32_t(s);
    }
  }

  void run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ReduceUpdate::Sum sum = sum_of(std::int32_t(n));
      if (sum.result != kNoValue) add(sum);
      if (sum.all_reduce >= 0) taken_[std::size_t(sum.all_reduce)] = true;
    }
    if (!plan_.updates.empty()) replace_steps();
  }

 private:
  // The sum that begins with a reduction over examples, or with what the replicas are given.
  ReduceUpdate::Sum sum_of(std::int32_t n) const {
    const Node& node = graph_.nodes[std::size_t(n)];
    if (is_step(n, PlanStep::Kind::kAllReduce)) return given_sum_of(n);
    if (!is_step(n, PlanStep::Kind::kNode) || node.locality != Locality::kTree) return {};
    const Value result = node.outputs[0];
    const bool blocks = !node.op->tree.finish && !may_raise(graph_, node) &&
                        !node.op->has(kScatters) && !graph_.type(result).shape.symbolic() &&
                        !graph_.type(result).batched();
    const bool of_rows =
        std::ranges::all_of(node.inputs, [&](Value input) { return graph_.type(input).batched(); });
    if (!blocks || !of_rows || uses_[std::size_t(result)] != 1) return {};
    if (!graph_.varying(result)) return {n, -1, result};
    const std::int32_t next = reader_[std::size_t(result)];
    if (next < 0 || !is_step(next, PlanStep::Kind::kAllReduce)) return {};
    const Node& all_reduce = graph_.nodes[std::size_t(next)];
    if (all_reduce.op->exchange) return {};
    return {n, next, all_reduce.outputs[0]};
  }

  ReduceUpdate::Sum given_sum_of(std::int32_t n) const {
    const Node& node = graph_.nodes[std::size_t(n)];
    if (node.op->exchange) return {};
    const ValueType& type = graph_.type(node.outputs[0]);
    const bool large = !type.batched() && !type.shape.symbolic() &&
                       example_bytes(type) > thresholds().deferred_bytes;
    return large && !taken_[std::size_t(n)] ? ReduceUpdate::Sum{-1, n, node.outputs[0]}
                                            : ReduceUpdate::Sum{};
  }

  bool is_step(std::int32_t n, PlanStep::Kind kind) const {
    const std::int32_t step = step_of_[std::size_t(n)];
    return step >= 0 && plan_.steps[std::size_t(step)].kind == kind;
  }

  // The elementwise node that alone reads the sum, or -1.
  std::int32_t update_of(const ReduceUpdate::Sum& sum) const {
    const std::int32_t n = reader_[std::size_t(sum.result)];
    if (uses_[std::size_t(sum.result)] != 1 || n < 0 || !is_step(n, PlanStep::Kind::kNode)) {
      return -1;
    }
    const Node& node = graph_.nodes[std::size_t(n)];
    if (!node.op->has(kElementwise) || node.op->has(kWholeRows)) return -1;
    if (may_raise(graph_, node)) return -1;
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
    return all ? n : -1;
  }

  void add(const ReduceUpdate::Sum& sum) {
    const std::int32_t update = update_of(sum);
    const auto same = std::ranges::find_if(plan_.updates, [&](const ReduceUpdate& other) {
      return update >= 0 && other.update == update;
    });
    if (same != plan_.updates.end()) {
      // One block serves all: they are cut alike.
      if (op_of(same->sums[0].tree) == op_of(sum.tree)) {
        same->sums.push_back(sum);
        return;
      }
    } else if (update >= 0) {
      plan_.updates.push_back({{sum}, update});
      return;
    }
    if (sum.tree >= 0 && sum.all_reduce >= 0) plan_.updates.push_back({{sum}, -1});
  }

  const OpDef* op_of(std::int32_t node) const {
    return node < 0 ? nullptr : graph_.nodes[std::size_t(node)].op;
  }

  // Each takes the place of the last of its nodes; the others leave their steps.
  void replace_steps() {
    std::vector<std::int32_t> taken_by(graph_.nodes.size(), -1);
    std::vector<std::vector<std::int32_t>> begins(plan_.steps.size());
    for (std::size_t u = 0; u < plan_.updates.size(); ++u) {
      std::int32_t last = -1;
      for (std::int32_t n : nodes_of(plan_.updates[u])) {
        taken_by[std::size_t(n)] = std::int32_t(u);
        last = std::max(last, step_of_[std::size_t(n)]);
      }
      begins[std::size_t(last)].push_back(std::int32_t(u));
    }
    std::vector<PlanStep> steps;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      for (std::int32_t u : begins[s]) {
        steps.push_back(
            {PlanStep::Kind::kReduceUpdate, nodes_of(plan_.updates[std::size_t(u)]), u, {}});
      }
      PlanStep step = std::move(plan_.steps[s]);
      const bool had_nodes = !step.nodes.empty();
      std::erase_if(step.nodes, [&](std::int32_t n) { return taken_by[std::size_t(n)] >= 0; });
      if (!had_nodes || !step.nodes.empty()) steps.push_back(std::move(step));
    }
    plan_.steps = std::move(steps);
  }

  static std::vector<std::int32_t> nodes_of(const ReduceUpdate& update) {
    std::vector<std::int32_t> nodes;
    for (const ReduceUpdate::Sum& sum : update.sums) {
      if (sum.tree >= 0) nodes.push_back(sum.tree);
      if (sum.all_reduce >= 0) nodes.push_back(sum.all_reduce);
    }
    if (update.update >= 0) nodes.push_back(update.update);
    return nodes;
  }

  Plan& plan_;
  const Graph& graph_;
  std::vector<int> uses_;              // per value
  std::vector<std::int32_t> reader_;   // per value: the last node that reads it, or -1
  std::vector<bool> taken_;            // per node: an all-reduce that a sum has
  std::vector<std::int32_t> step_of_;  // per node: -1 in loops
};

}  // namespace

void fuse_updates(Plan& plan) {
  UpdateFuser(plan).run();
}

}  // namespace samegrad
