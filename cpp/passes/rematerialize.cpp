// Rematerialization: a loop writes what a later one reads, both through memory. The later loop
// computes a value itself if a few cheap operations make it from what the loop reads anyway (x
// minus the mean of x, for instance).
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/thresholds.h"
#include "ops/function_flops.h"
#include "passes/iteration_space.h"
#include "passes/loop_assignment.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

// Computing a register of elements takes about as long as loading one.
bool is_one_operation(const BlockFn& block) {
  switch (block.kind) {
    case BlockFn::kUnary:
    case BlockFn::kBinary:
    case BlockFn::kSelect:
    case BlockFn::kCast:
    case BlockFn::kOneHot:
      return flops_of_function(block) == 1;
    default:
      return false;
  }
}
// Bytes that move through memory while one such operation makes an element.
constexpr double kBytesPerOperation = 1;
// A written byte is fetched into the cache first.
constexpr double kWritten = 2;
// More than that never pays.
constexpr std::size_t kMaxOperations = 32;

class Rematerialization {
 public:
  Rematerialization(Graph graph, const LeaveLoops& leave)
      : graph_(std::move(graph)),
        stage_(assign_loops(graph_, leave).stage),
        later_(graph_.values.size()),
        kept_(graph_.values.size(), false),
        in_memory_(graph_.values.size(), false) {
    const PerValue<bool> splat(graph_.values.size(), false);
    for (NodeId n : graph_.nodes.ids()) look_at(n, splat);
    for (Value output : graph_.outputs) keep(output);
    for (const StateWrite& write : graph_.writes) keep(write.value);
  }

  Graph run() {
    bool any = false;
    for (const Node& node : graph_.nodes) {
      const Value value = node.outputs[0];
      if (later_[value].empty() || kept_[value]) continue;
      any |= decide(value);
    }
    return any ? rewritten() : staged(std::move(graph_), stage_);
  }

 private:
  using Place = std::pair<Value, int>;  // a value in a stage

  // The cost of rematerializing a value in a stage: the operations and the values that they read.
  struct Cone {
    std::set<Place> made, read;
  };

  double bytes(Value value) const { return double(example_bytes(graph_.type(value))); }
  // True for an array large enough to matter; a splat of one number is not.
  bool is_large(Value value) const {
    const Node* producer = graph_.producer(value);
    if (producer && producer->op->has(kSplat)) return false;
    return graph_.type(value).batched() && bytes(value) >= double(thresholds().recomputed_bytes);
  }
  int stage_of(Value value) const {
    const Node* producer = graph_.producer(value);
    return producer ? stage_[graph_.nodes.id_of(*producer)] : -1;
  }
  bool is_cheap(Value value) const {
    const Node* node = graph_.producer(value);
    return node && node->locality == Locality::kPerExample && is_large(value) &&
           is_one_operation(node->op->block) && !may_raise(graph_, *node);
  }

  // It stays in memory, for all to read.
  void keep(Value value) {
    kept_[value] = true;
    in_memory_[value] = true;
    for (const int stage : later_[value]) read_.emplace(value, stage);
  }

  void look_at(NodeId n, const PerValue<bool>& splat) {
    const Node& node = graph_.nodes[n];
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value value = node.inputs[k];
      if (!node.op->reads(k) || !is_large(value) || stage_of(value) == stage_[n]) continue;
      later_[value].insert(stage_[n]);
      const bool again = is_cheap(value) && node.locality == Locality::kPerExample &&
                         space_of(graph_, splat, node) && !may_raise(graph_, node);
      if (!again || kept_[value]) keep(value);
    }
  }

  // The operations that make the value once more, down to what is in memory or is none of them.
  void grow(Value value, int stage, Cone& cone, bool again = true) const {
    const Place place{value, stage};
    if (!is_large(value) || made_.count(place) || cone.made.count(place)) return;
    const bool stays = kept_[value] && !(again && is_profitable_to_recompute(value, stage, cone));
    if (!is_cheap(value) || stays || cone.made.size() >= kMaxOperations) {
      cone.read.insert(place);
      return;
    }
    cone.made.insert(place);
    for (Value input : graph_.producer(value)->inputs) grow(input, stage, cone, again);
  }

  // True if computing a value from operands that the stage reads anyway is faster than reading it.
  bool is_profitable_to_recompute(Value value, int stage, const Cone& so_far) const {
    const auto is_read = [&](const Place& place) {
      return read_.count(place) || so_far.read.count(place);
    };
    if (!is_cheap(value) || is_read({value, stage})) return false;
    Cone cone;
    cone.made.emplace(value, stage);
    for (Value input : graph_.producer(value)->inputs) grow(input, stage, cone, false);
    return std::ranges::all_of(cone.read, is_read) && cost_of_making(cone) < bytes(value);
  }

  double cost_of_making(const Cone& cone) const {
    double cost = 0;
    for (const Place& place : cone.made) {
      cost += kBytesPerOperation * double(example_size(graph_.type(place.first)));
    }
    return cost;
  }

  bool decide(Value value) {
    Cone cone;
    for (const int stage : later_[value]) grow(value, stage, cone);
    double cost = 0;
    std::set<Value> stored;
    for (const Place& place : cone.read) {
      if (!read_.count(place)) cost += bytes(place.first);
      if (graph_.producer(place.first) && !in_memory_[place.first]) stored.insert(place.first);
    }
    for (const Value leaf : stored) cost += kWritten * bytes(leaf);
    cost += cost_of_making(cone);
    if (cost >= bytes(value) * (kWritten + double(later_[value].size()))) {
      keep(value);
      return false;
    }
    again_.insert(value);
    made_.insert(cone.made.begin(), cone.made.end());
    read_.insert(cone.read.begin(), cone.read.end());
    for (const Value leaf : stored) in_memory_[leaf] = true;
    return true;
  }

  // The graph with the stages in its nodes.
  static Graph staged(Graph graph, const PerNode<int>& stage) {
    for (NodeId n : graph.nodes.ids()) graph.nodes[n].stage = stage[n];
    return graph;
  }

  Graph rewritten() {
    Rewriter rewrite(graph_);
    PerNode<int> stage;
    for (NodeId n : graph_.nodes.ids()) {
      Values inputs;
      for (Value input : graph_.nodes[n].inputs) {
        const bool again = again_.count(input) && stage_of(input) < stage_[n];
        inputs.push_back(again ? made_again(input, stage_[n], rewrite, stage) : rewrite(input));
      }
      rewrite.copy(graph_.nodes[n], std::move(inputs));
      stage.push_back(stage_[n]);
    }
    return staged(rewrite.finish(), stage);
  }

  Value made_again(Value value, int in_stage, Rewriter& rewrite, PerNode<int>& stage) {
    if (!made_.count({value, in_stage})) return rewrite(value);
    if (const auto copy = copies_.find({value, in_stage}); copy != copies_.end()) {
      return copy->second;
    }
    const Node& node = *graph_.producer(value);
    Values inputs;
    for (Value input : node.inputs) inputs.push_back(made_again(input, in_stage, rewrite, stage));
    const Value first = rewrite(value);
    rewrite.copy(node, std::move(inputs));
    stage.push_back(in_stage);
    const Value copy = rewrite(value);
    rewrite.replace(value, first);
    copies_[{value, in_stage}] = copy;
    return copy;
  }

  Graph graph_;
  PerNode<int> stage_;
  PerValue<std::set<int>> later_;  // stages that read it, but for its own
  PerValue<bool> kept_;            // it passes from loop to loop as it is
  PerValue<bool> in_memory_;
  std::set<Place> read_;           // what stages read from memory
  std::set<Place> made_;           // what they make again
  std::set<Value> again_;          // what they need it for
  std::map<Place, Value> copies_;  // in the new graph
};

}  // namespace

Graph rematerialize_for_later_loops(Graph graph, const LeaveLoops& leave) {
  return Rematerialization(std::move(graph), leave).run();
}

}  // namespace samegrad
