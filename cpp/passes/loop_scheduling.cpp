#include "passes/loop_scheduling.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "ir/op_def.h"

namespace samegrad {
namespace {

class LoopScheduling {
 public:
  LoopScheduling(const Graph& graph, const PerNode<bool>& in_loop, const PerNode<bool>& joint)
      : graph_(graph),
        in_loop_(in_loop),
        readers_(graph.nodes.size()),
        floor_(graph.nodes.size(), 0),
        component_(graph.nodes.size(), 0) {
    for (NodeId n : graph.nodes.ids()) {
      key_.push_back(loop_key(graph, graph.nodes[n], joint[n]));
      for_each_operand(n, [&](NodeId producer, Value) {
        auto& readers = readers_[producer];
        if (readers.empty() || readers.back() != n) readers.push_back(n);
      });
    }
    set_earliest();
  }

  PerNode<int> run() {
    const int last = stage_.empty() ? 0 : *std::ranges::max_element(stage_);
    if (last < 3) return std::move(stage_);  // one loop
    last_ = last + last % 2;                 // what only results need may be behind all loops
    std::vector<std::vector<NodeId>> nodes(std::size_t(last) + 1);
    for (NodeId n : graph_.nodes.ids()) {
      nodes[std::size_t(stage_[n])].push_back(n);
      if (in_loop_[n]) loops_[key_[n]].insert(stage_[n]);
    }
    latest_ = stage_;
    for (int stage = last; stage >= 0; --stage) {
      const std::vector<NodeId>& here = nodes[std::size_t(stage)];
      for (std::size_t k = here.size(); k-- > 0;) latest_[here[k]] = latest(here[k]);
      if (stage % 2) sink(here, stage);
    }
    if (moved_) set_earliest();
    return std::move(stage_);
  }

 private:
  static constexpr int kFree = std::numeric_limits<int>::max();

  template <class F>
  void for_each_operand(NodeId n, const F& f) const {
    const Node& node = graph_.nodes[n];
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.op->reads(k)) continue;
      const ValueInfo& info = graph_.values[node.inputs[k]];
      if (info.source == Source::kNode) f(info.node(), node.inputs[k]);
    }
  }

  // True if the producer's examples are available to the reader in the same loop.
  bool flows(NodeId producer, NodeId reader) const {
    return in_loop_[producer] && in_loop_[reader] && key_[producer] == key_[reader] &&
           graph_.nodes[producer].locality == Locality::kPerExample;
  }

  // The least number of stages between a producer and its reader.
  int distance(NodeId producer, NodeId reader) const {
    if (!in_loop_[producer]) return in_loop_[reader] ? 1 : 0;
    if (!in_loop_[reader]) return 1;
    return flows(producer, reader) ? 0 : 2;
  }

  void set_earliest() {
    stage_.assign(graph_.nodes.size(), 0);
    for (NodeId n : graph_.nodes.ids()) {
      int stage = std::max(in_loop_[n] ? 1 : 0, floor_[n]);
      for_each_operand(n, [&](NodeId producer, Value) {
        stage = std::max(stage, stage_[producer] + distance(producer, n));
      });
      stage_[n] = stage;
    }
  }

  // The last stage that the readers allow: those of later loops stay where they are.
  int latest(NodeId n) const {
    if (graph_.nodes[n].op->has(kSideEffect)) return stage_[n];
    int limit = kFree;
    for (NodeId reader : readers_[n]) {
      const bool stays = in_loop_[reader] && stage_[reader] > stage_[n];
      limit = std::min(limit, (stays ? stage_[reader] : latest_[reader]) - distance(n, reader));
    }
    limit = std::min(limit, last_);
    return limit % 2 == (in_loop_[n] ? 1 : 0) ? limit : limit - 1;
  }

  // Moves what hangs together and is free to go, if less passes from loop to loop then.
  void sink(const std::vector<NodeId>& here, int stage) {
    for (NodeId n : here) {
      if (component_[n] != 0 || latest_[n] <= stage) continue;
      const std::vector<NodeId> members = component_of(n, stage);
      const int target = target_of(members, stage);
      if (target <= stage || !pays(members, stage, target)) continue;
      moved_ = true;
      for (NodeId member : members) floor_[member] = stage_[member] = target;
    }
  }

  std::vector<NodeId> component_of(NodeId first, int stage) {
    std::vector<NodeId> members{first};
    component_[first] = ++components_;
    const auto visit = [&](NodeId n) {
      if (stage_[n] != stage || latest_[n] <= stage || component_[n] != 0) return;
      component_[n] = components_;
      members.push_back(n);
    };
    for (std::size_t k = 0; k < members.size(); ++k) {
      const NodeId n = members[k];
      for_each_operand(n, [&](NodeId producer, Value) {
        if (flows(producer, n)) visit(producer);
      });
      for (NodeId reader : readers_[n]) {
        if (flows(n, reader)) visit(reader);
      }
    }
    return members;
  }

  // The last loop of theirs that all members may be in.
  int target_of(const std::vector<NodeId>& members, int stage) const {
    int limit = last_;
    for (NodeId n : members) limit = std::min(limit, latest_[n]);
    const std::set<int>& loops = loops_.at(key_[members[0]]);
    const auto above = loops.upper_bound(limit);
    return above == loops.begin() ? stage : *std::prev(above);
  }

  // True if more rows stop passing through memory than start to. Values with other readers stay in
  // memory, and one loop has more of them at a time than two.
  bool pays(const std::vector<NodeId>& members, int stage, int target) const {
    const int own = component_[members[0]];
    std::int64_t saved = 0, kept = 0;
    std::set<NodeId> operands;
    for (NodeId n : members) {
      if (passes_on(n, {stage})) (passes_on(n, {stage, target}) ? kept : saved) += bytes_of(n);
      if (is_view(n)) continue;
      for_each_operand(n, [&](NodeId, Value value) {
        const NodeId maker = maker_of(value);
        if (maker.exists() && in_loop_[maker] && component_[maker] != own) operands.insert(maker);
      });
    }
    for (NodeId n : operands) {
      if (!passes_on(n, {stage_[n]})) kept += bytes_of(n);
    }
    return kept < saved;
  }

  bool is_view(NodeId n) const { return graph_.nodes[n].op->has(kAliases); }

  // The node that computes the bytes of a view; none if they are an argument's, for instance.
  NodeId maker_of(Value value) const {
    while (graph_.values[value].source == Source::kNode) {
      const NodeId n = graph_.values[value].node();
      if (!is_view(n)) return n;
      value = graph_.nodes[n].inputs[0];
    }
    return {};
  }

  // True if a node outside the loops of these stages reads the rows that the node computes.
  bool passes_on(NodeId n, std::initializer_list<int> stages) const {
    if (graph_.nodes[n].locality != Locality::kPerExample || is_view(n)) return false;
    return is_read_outside(n, stages);
  }
  bool is_read_outside(NodeId n, std::initializer_list<int> stages) const {
    return std::ranges::any_of(readers_[n], [&](NodeId reader) {
      if (is_view(reader)) return is_read_outside(reader, stages);
      return std::ranges::count(stages, stage_[reader]) == 0;
    });
  }

  std::int64_t bytes_of(NodeId n) const {
    std::int64_t bytes = 0;
    for (Value output : graph_.nodes[n].outputs) {
      const ValueType& type = graph_.type(output);
      if (type.batched()) bytes += example_bytes(type);
    }
    return bytes;
  }

  const Graph& graph_;
  const PerNode<bool>& in_loop_;
  PerNode<std::vector<NodeId>> readers_;
  PerNode<LoopKey> key_;
  PerNode<int> floor_;  // the stage that a node was moved to
  PerNode<int> stage_, latest_;
  PerNode<int> component_;  // 0: none yet
  std::map<LoopKey, std::set<int>> loops_;
  int components_ = 0, last_ = 0;
  bool moved_ = false;
};

}  // namespace

PerNode<int> stages_of(const Graph& graph, const PerNode<bool>& in_loop,
                       const PerNode<bool>& joint) {
  return LoopScheduling(graph, in_loop, joint).run();
}

int symbol_of_examples(const Graph& graph, const Node& node) {
  const auto of = [&](const std::vector<Value>& values) {
    for (Value value : values) {
      if (graph.type(value).batched()) return graph.type(value).batch.symbol;
    }
    return -1;
  };
  // A reduction goes through its operands' examples; its result may count others, gathered ones.
  const bool reduces = node.locality == Locality::kBatchReduction;
  const int first = of(reduces ? node.inputs : node.outputs);
  return first >= 0 ? first : of(reduces ? node.outputs : node.inputs);
}

LoopKey loop_key(const Graph& graph, const Node& node, bool joint) {
  const auto varying = [&](Value value) { return graph.varying(value); };
  return {symbol_of_examples(graph, node),
          varying(node.outputs[0]) || std::ranges::any_of(node.inputs, varying), joint};
}

}  // namespace samegrad
