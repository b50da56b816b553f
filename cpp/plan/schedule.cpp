#include "plan/schedule.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "passes/joint_rows.h"
#include "passes/stages.h"
#include "plan/cost.h"

namespace samegrad {
namespace {

// Tiles are rows of axis 0; a size that differs between replicas is none of a tile's.
bool examples_come_first(const Graph& graph, const Node& node) {
  const auto first = [&](Value value) {
    const ValueType& type = graph.type(value);
    return (!type.batched() || type.batch.axis == 0) && !type.shape.symbolic();
  };
  return std::all_of(node.inputs.begin(), node.inputs.end(), first) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), first);
}

class Scheduler {
 public:
  Scheduler(PlanDraft& plan, const PlanOptions& options) : plan_(plan), options_(options) {}

  void run() {
    const Graph& graph = plan_.graph;
    for (const Node& node : graph.nodes) in_loop_.push_back(belongs_to_loop(node));
    cut_.resize(graph.nodes.size());
    plan_.joint = joint_nodes(graph);
    plan_.joint_sum = joint_sums(graph, plan_.joint);
    if (options_.cut_products) cut_ = products_to_cut(graph, in_loop_);
    plan_.loop_weights = streamed_weights(graph, in_loop_);
    for (NodeId n : graph.nodes.ids()) {
      if (cut_[n]) in_loop_[n] = false;
    }
    plan_.kept_weights = streamed_weights(graph, in_loop_);
    stage_ = stages_of(graph, in_loop_);
    const int last = stage_.empty() ? -1 : *std::ranges::max_element(stage_);
    for (int stage = 0; stage <= last; ++stage) {
      if (stage % 2) {
        emit_loops(stage);
      } else {
        emit_whole(stage);
      }
    }
  }

 private:
  bool belongs_to_loop(const Node& node) const {
    const Graph& graph = plan_.graph;
    if (!has_tiles(node.locality) || node.op->has(kCollective)) return false;
    if (symbol_of_examples(graph, node) < 0 || !examples_come_first(graph, node)) return false;
    if (node.locality == Locality::kExample) return true;
    return !options_.defer_products || !is_cheaper_after_loop(graph, node);
  }

  void emit_loops(int stage) {
    const Graph& graph = plan_.graph;
    std::map<LoopKey, StepId> loops;
    for (NodeId n : graph.nodes.ids()) {
      if (!in_loop_[n] || stage_[n] != stage) continue;
      const Node& node = graph.nodes[n];
      const LoopKey key = loop_key(graph, node, plan_.joint[n]);
      if (!loops.count(key)) {
        LoopStep loop;
        loop.symbol = key.symbol;
        loop.varying = key.varies;
        loop.joint = key.joint;
        loops[key] = plan_.steps.push_back(std::move(loop));
      }
      LoopStep& loop = *plan_.steps[loops[key]].get_if<LoopStep>();
      loop.nodes.push_back(n);
      if (node.locality == Locality::kTree) {
        loop.trees.insert(loop.trees.end(), node.outputs.begin(), node.outputs.end());
      }
    }
  }

  PlanStep whole_step(NodeId n) const {
    if (plan_.graph.nodes[n].op->has(kControl)) return ControlStep{{{n}}};
    if (cut_[n]) return ProductStep{{{n}}};
    return NodeStep{{{n}}};
  }

  // Collectives that can run together do: as soon as one is due, all that are ready join it.
  void emit_whole(int stage) {
    const Graph& graph = plan_.graph;
    std::vector<NodeId> pending;
    for (NodeId n : graph.nodes.ids()) {
      if (!in_loop_[n] && stage_[n] == stage) pending.push_back(n);
    }
    while (!pending.empty()) {
      PerNode<bool> waiting(graph.nodes.size(), false);
      for (NodeId n : pending) waiting[n] = true;
      std::vector<NodeId> later, collectives;
      for (NodeId n : pending) {
        const Node& node = graph.nodes[n];
        const bool blocked = std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value value) {
          const ValueInfo& info = graph.values[value];
          return info.source == Source::kNode && waiting[info.node()];
        });
        if (blocked) {
          later.push_back(n);
        } else if (node.op->has(kCollective)) {
          collectives.push_back(n);
        } else {
          plan_.steps.push_back(whole_step(n));
          waiting[n] = false;
        }
      }
      if (!collectives.empty()) {
        plan_.steps.push_back(AllReduceStep{{collectives}});
      }
      pending = std::move(later);
    }
  }

  PlanDraft& plan_;
  const PlanOptions& options_;
  PerNode<int> stage_;
  PerNode<bool> in_loop_;
  PerNode<bool> cut_;  // out of the loop that it could be in
};

}  // namespace

void schedule(PlanDraft& plan, const PlanOptions& options) {
  Scheduler(plan, options).run();
}

}  // namespace samegrad
