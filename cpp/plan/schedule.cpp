#include "plan/schedule.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/thresholds.h"
#include "plan/cost.h"
#include "tensor/tree.h"

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

int symbol_of(const Graph& graph, const Node& node) {
  for (Value value : node.outputs) {
    if (graph.type(value).batched()) return graph.type(value).batch.symbol;
  }
  for (Value value : node.inputs) {
    if (graph.type(value).batched()) return graph.type(value).batch.symbol;
  }
  return -1;
}

class Scheduler {
 public:
  Scheduler(Plan& plan, const PlanOptions& options) : plan_(plan), options_(options) {}

  void run() {
    const Graph& graph = plan_.graph;
    level_.resize(graph.nodes.size());
    for (const Node& node : graph.nodes) in_loop_.push_back(belongs_to_loop(node));
    cut_.resize(graph.nodes.size());
    if (options_.cut_products) cut_ = products_to_cut(graph, in_loop_);
    plan_.loop_weights = streamed_weights(graph, in_loop_);
    std::int32_t last = 0;
    for (NodeId n : graph.nodes.ids()) {
      if (cut_[n]) in_loop_[n] = false;
      level_[n] = level_of(graph.nodes[n], in_loop_[n]);
      last = std::max(last, level_[n]);
    }
    plan_.kept_weights = streamed_weights(graph, in_loop_);
    for (std::int32_t level = 0; level <= last; ++level) {
      if (level % 2) {
        emit_loops(level);
      } else {
        emit_whole(level);
      }
    }
  }

 private:
  // Even levels hold whole nodes, odd ones loops.
  std::int32_t level_of(const Node& node, bool in_loop) const {
    const Graph& graph = plan_.graph;
    std::int32_t level = in_loop ? 1 : 0;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.op->reads(k)) continue;
      const ValueInfo& info = graph.values[node.inputs[k]];
      if (info.source != Source::kNode) continue;
      const NodeId producer = info.node();
      std::int32_t earliest = level_[producer];
      if (in_loop) {
        const bool flows_inside = in_loop_[producer] && same_loop(node, graph.nodes[producer]) &&
                                  graph.nodes[producer].locality == Locality::kExample;
        if (!flows_inside) earliest += in_loop_[producer] ? 2 : 1;
      } else if (in_loop_[producer]) {
        earliest += 1;
      }
      level = std::max(level, earliest);
    }
    return level;
  }

  bool same_loop(const Node& a, const Node& b) const {
    return symbol_of(plan_.graph, a) == symbol_of(plan_.graph, b) && varies(a) == varies(b);
  }

  // The tree reduction of a single replica's rows: a node varies if what it reads does.
  bool varies(const Node& node) const {
    const Graph& graph = plan_.graph;
    if (graph.varying(node.outputs[0])) return true;
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](Value value) { return graph.varying(value); });
  }

  bool belongs_to_loop(const Node& node) const {
    const Graph& graph = plan_.graph;
    if (node.locality == Locality::kWhole || node.op->has(kCollective)) return false;
    if (symbol_of(graph, node) < 0 || !examples_come_first(graph, node)) return false;
    if (node.locality == Locality::kExample) return true;
    return !options_.defer_products || !is_cheaper_after_loop(graph, node);
  }

  void emit_loops(std::int32_t level) {
    const Graph& graph = plan_.graph;
    std::map<std::pair<int, bool>, LoopId> loops;
    for (NodeId n : graph.nodes.ids()) {
      if (!in_loop_[n] || level_[n] != level) continue;
      const Node& node = graph.nodes[n];
      const auto key = std::make_pair(symbol_of(graph, node), varies(node));
      if (!loops.count(key)) {
        loops[key] = plan_.loops.push_back({{}, key.first, key.second, {}, {}});
        plan_.steps.push_back({PlanStep::Kind::kLoop, {}, loops[key].number(), {}});
      }
      Loop& loop = plan_.loops[loops[key]];
      loop.nodes.push_back(n);
      if (node.locality == Locality::kTree) {
        loop.trees.insert(loop.trees.end(), node.outputs.begin(), node.outputs.end());
      }
    }
  }

  // Collectives that can run together do: as soon as one is due, all that are ready join it.
  void emit_whole(std::int32_t level) {
    const Graph& graph = plan_.graph;
    std::vector<NodeId> pending;
    for (NodeId n : graph.nodes.ids()) {
      if (!in_loop_[n] && level_[n] == level) pending.push_back(n);
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
          const auto kind = node.op->has(kControl) ? PlanStep::Kind::kControl
                            : cut_[n]              ? PlanStep::Kind::kRows
                                                   : PlanStep::Kind::kNode;
          plan_.steps.push_back({kind, {n}, -1, {}});
          waiting[n] = false;
        }
      }
      if (!collectives.empty()) {
        plan_.steps.push_back({PlanStep::Kind::kAllReduce, collectives, -1, {}});
      }
      pending = std::move(later);
    }
  }

  Plan& plan_;
  const PlanOptions& options_;
  PerNode<std::int32_t> level_;
  PerNode<bool> in_loop_;
  PerNode<bool> cut_;  // out of the loop that it could be in
};

}  // namespace

void schedule(Plan& plan, const PlanOptions& options) {
  Scheduler(plan, options).run();
}

}  // namespace samegrad
