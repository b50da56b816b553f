#include "plan/schedule.h"

#include <algorithm>
#include <map>

#include "passes/joint_examples.h"
#include "passes/loop_assignment.h"
#include "passes/loop_scheduling.h"

namespace samegrad {
namespace {

class Scheduler {
 public:
  Scheduler(PlanDraft& plan, const PlanOptions& options)
      : plan_(plan), loops_(assign_loops(plan.graph, options.passes.leave_loops)) {}

  void run() {
    plan_.joint = loops_.joint;
    plan_.joint_sum = joint_sums(plan_.graph, plan_.joint);
    plan_.loop_weights = loops_.loop_weights;
    plan_.kept_weights = loops_.kept_weights;
    const PerNode<int>& stages = loops_.stage;
    const int last = stages.empty() ? -1 : *std::ranges::max_element(stages);
    for (int stage = 0; stage <= last; ++stage) {
      if (stage % 2) {
        emit_loops(stage);
      } else {
        emit_whole(stage);
      }
    }
  }

 private:
  void emit_loops(int stage) {
    const Graph& graph = plan_.graph;
    std::map<LoopKey, StepId> loops;
    for (NodeId n : graph.nodes.ids()) {
      if (!loops_.in_loop[n] || loops_.stage[n] != stage) continue;
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
      if (node.locality == Locality::kBatchReduction) {
        loop.trees.insert(loop.trees.end(), node.outputs.begin(), node.outputs.end());
      }
    }
  }

  PlanStep whole_step(NodeId n) const {
    if (plan_.graph.nodes[n].op->has(kControl)) return ControlStep{{{n}}};
    if (loops_.cut[n]) return GroupedGemmStep{{{n}}};
    return NodeStep{{{n}}};
  }

  // Collectives that can run together do: as soon as one is due, all that are ready join it.
  void emit_whole(int stage) {
    const Graph& graph = plan_.graph;
    std::vector<NodeId> pending;
    for (NodeId n : graph.nodes.ids()) {
      if (!loops_.in_loop[n] && loops_.stage[n] == stage) pending.push_back(n);
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
  const LoopAssignment loops_;
};

}  // namespace

void schedule(PlanDraft& plan, const PlanOptions& options) {
  Scheduler(plan, options).run();
}

}  // namespace samegrad
