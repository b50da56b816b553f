#include "analysis/whole_batch.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "analysis/count_powers.h"
#include "ir/placement.h"

namespace samegrad {
namespace {

// The nodes between the sums and the value, by place.
class Between {
 public:
  Between(const Graph& graph, Value value) : graph_(graph), counts_(graph) {
    next_.push_back(value);
    while (known_ && !next_.empty()) {
      const Value one = next_.back();
      next_.pop_back();
      visit(one);
    }
    known_ = known_ && !has_own_derivative();
  }

  bool known() const { return known_; }
  const std::set<NodeId>& nodes() const { return nodes_; }
  const std::set<Value>& sums() const { return sums_; }

 private:
  void visit(Value value) {
    const Placement placement = graph_.placement(value);
    const Node* node = graph_.producer(value);
    known_ = placement != Placement::kSharded && !graph_.type(value).batched();
    if (placement == Placement::kReplicated || is_sum(placement, node)) {
      known_ &= !knows_replicas(value);
      if (placement == Placement::kPartial) sums_.insert(value);
      return;
    }
    known_ &= node && can_be_repeated(*node);
    if (!known_ || !nodes_.insert(graph_.values[value].node()).second) return;
    for (std::size_t k = 0; k < node->inputs.size(); ++k) {
      if (node->op->reads(k)) next_.push_back(node->inputs[k]);
      known_ &= node->op->reads(k) || !graph_.type(node->inputs[k]).batched();
    }
  }

  // Over the examples themselves. What is made of sums has other things added to it, maybe.
  bool is_sum(Placement placement, const Node* node) const {
    return placement == Placement::kPartial && !(node && node->op->has(kControl)) &&
           !(node && takes_parts(graph_, *node));
  }

  static bool can_be_repeated(const Node& node) {
    constexpr auto kNot =
        Trait(kCollective | kRandomOp | kReplicaDependent | kSideEffect | kControl | kGradientRule);
    return !node.op->has(kNot) && !node.op->exchange && node.regions.empty() && !node.derivative;
  }

  bool knows_replicas(Value value) const {
    return std::ranges::any_of(counts_.of(value).terms,
                               [](const CountTerm& term) { return term.powers.replicas != 0; });
  }

  // Custom derivatives name these values, not the rematerialized ones.
  bool has_own_derivative() const {
    return std::ranges::any_of(graph_.nodes, [&](const Node& node) {
      return node.op->has(kGradientRule) && std::ranges::any_of(node.inputs, [&](Value input) {
               return graph_.producer(input) && nodes_.contains(graph_.values[input].node());
             });
    });
  }

  const Graph& graph_;
  CountWalk counts_;
  Values next_;
  std::set<NodeId> nodes_;
  std::set<Value> sums_;
  bool known_ = true;
};

}  // namespace

Value over_all_replicas(Builder& builder, Value value) {
  const Graph& graph = builder.graph();
  const Between between(graph, value);
  if (!between.known()) return kNoValue;
  std::unordered_map<Value, Value> made;
  for (Value sum : between.sums()) made[sum] = builder("all_reduce", {sum});
  for (NodeId index : between.nodes()) {
    const Node node = graph.nodes[index];  // the list grows
    Values inputs = node.inputs;
    for (Value& input : inputs) {
      if (const auto found = made.find(input); found != made.end()) input = found->second;
    }
    const Values outputs = builder.apply(*node.op, inputs, node.attrs);
    for (std::size_t i = 0; i < outputs.size(); ++i) made[node.outputs[i]] = outputs[i];
  }
  const auto found = made.find(value);
  return found == made.end() ? value : found->second;
}

}  // namespace samegrad
