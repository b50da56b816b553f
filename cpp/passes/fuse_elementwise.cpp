// Elementwise nodes that feed each other become one node, which runs them block by block while the
// numbers are in L1; with reductions along the last axes and what goes back from them to their
// elements, row by row. Numbers that were spread to a full shape (broadcast_like, full_like) enter
// as what they are.
#include <algorithm>
#include <queue>
#include <utility>

#include "ops/fused.h"
#include "passes/fusion_groups.h"
#include "passes/loop_assignment.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

// Makes the fused node of one group.
class Fusion {
 public:
  Fusion(Rewriter& rewrite, const FusionGroups& groups, const PerValue<int>& uses,
         const std::vector<NodeId>& members)
      : rewrite_(rewrite),
        graph_(rewrite.from()),
        groups_(groups),
        uses_(uses),
        members_(members),
        space_(*groups.space_of_group(members[0])) {
    program_.axes = space_.axes;
    program_.columns = columns_of(space_);
  }

  void build() {
    collect();
    if (space_.axes > 0 && !operands_tell_the_space()) {
      for (const NodeId n : members_) rewrite_.copy(graph_.nodes[n]);
      return;
    }
    assign();
    emit();
  }

 private:
  static constexpr int kNowhere = -1;

  // An operand of a step: the step in the group that makes it, or an operand of the fused node.
  struct OperandSource {
    int step = kNowhere;
    int operand = kNowhere;
  };

  const Node& node_of(std::size_t step) const { return graph_.nodes[members_[step]]; }

  // A value may be an operand twice: as a row and as one element for each.
  int operand(Value fresh, BroadcastKind role) {
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      if (operands_[k] == fresh && program_.roles[k] == role) return int(k);
    }
    operands_.push_back(fresh);
    program_.roles.push_back(role);
    return int(operands_.size()) - 1;
  }

  // The value, or the number that was spread to make it.
  Value outside(Value value) {
    if (!groups_.splat(value)) return rewrite_(value);
    const Node& producer = *graph_.producer(value);
    if (producer.op->has(kSplat)) {
      if (producer.op->reads(0)) return rewrite_(producer.inputs[0]);
      return rewrite_.builder().number(graph_.type(value).dtype,
                                       producer.attrs.as<FullAttrs>().value);
    }
    Values numbers;
    for (Value input : producer.inputs) numbers.push_back(outside(input));
    return rewrite_.builder().apply(*producer.op, numbers, producer.attrs)[0];
  }

  // The step of the group that makes the value, or kNowhere.
  int step_of(Value value) const {
    const Node* producer = graph_.producer(value);
    if (!producer) return kNowhere;
    const auto at = std::find(members_.begin(), members_.end(), groups_.id_of(*producer));
    return at == members_.end() ? kNowhere : int(at - members_.begin());
  }

  OperandSource source_of(std::size_t step, std::size_t k) {
    const Node& node = node_of(step);
    const Value input = node.inputs[k];
    const int made_by = step_of(input);
    const BlockFn::Kind kind = node.op->block.kind;
    // These kernels step along repeated operands, so that no repeated copy is needed.
    const bool walks = kind == BlockFn::kBinary || kind == BlockFn::kSelect;
    if (made_by != kNowhere && walks &&
        node_of(std::size_t(made_by)).op->block.kind == BlockFn::kRepeat) {
      return source_of(std::size_t(made_by), 0);
    }
    if (made_by != kNowhere) return {made_by, kNowhere};
    const BroadcastKind role = *broadcast_of_operand(graph_, groups_.splat(), space_, node, k);
    const Value value = role == BroadcastKind::kScalar ? outside(input) : rewrite_(input);
    return {kNowhere, operand(value, role)};
  }

  void collect() {
    sources_.resize(members_.size());
    needed_.assign(members_.size(), false);
    for (std::size_t s = 0; s < members_.size(); ++s) {
      if (leaves(members_[s])) results_.push_back(int(s));
    }
    // Nobody reads a dead group, which stays where dead nodes are kept.
    if (results_.empty()) results_.push_back(int(members_.size()) - 1);
    for (const int s : results_) needed_[std::size_t(s)] = true;
    for (std::size_t s = members_.size(); s-- > 0;) {
      if (!needed_[s]) continue;
      const Node& node = node_of(s);
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (!node.op->reads(k)) continue;
        sources_[s].push_back(source_of(s, k));
        const int made_by = sources_[s].back().step;
        if (made_by != kNowhere) needed_[std::size_t(made_by)] = true;
      }
      if (node.op->block.kind == BlockFn::kOneHot) add_numbers_of_one_hot(s);
    }
  }

  // Adds the on and off values as operands.
  void add_numbers_of_one_hot(std::size_t step) {
    const auto& attrs = node_of(step).attrs.as<OneHotAttrs>();
    for (const Scalar& number : {attrs.on, attrs.off}) {
      const Value value = rewrite_.builder().number(attrs.dtype, number);
      sources_[step].push_back({kNowhere, operand(value, BroadcastKind::kScalar)});
    }
  }

  // The shape of a fused node is what its operands broadcast to.
  bool operands_tell_the_space() const {
    const auto has = [&](BroadcastKind role) {
      return std::ranges::count(program_.roles, role) > 0;
    };
    return has(BroadcastKind::kFull) ||
           (has(BroadcastKind::kReduced) && has(BroadcastKind::kInner));
  }

  BroadcastKind role_of(std::size_t step) const {
    return *broadcast_of_node(graph_, space_, node_of(step));
  }

  // True if a reader outside the group reads the node's result.
  bool leaves(NodeId node) const {
    const auto& readers = groups_.readers(node);
    const auto inside = std::count_if(readers.begin(), readers.end(), [&](NodeId reader) {
      return groups_.group_of(reader) == groups_.group_of(node);
    });
    return uses_[graph_.nodes[node].outputs[0]] > inside;
  }

  // Registers: a result is written where it belongs.
  void assign() {
    const int first_result = int(operands_.size());
    const int first_temporary = first_result + int(results_.size());
    std::vector<int> last_use(members_.size(), 0);
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      for (const OperandSource& source : sources_[s]) {
        if (source.step >= 0) last_use[std::size_t(source.step)] = int(s);
      }
    }
    std::vector<int> busy_until[2];  // per temporary: of whole blocks, of rows
    place_.assign(members_.size(), kNowhere);
    for (std::size_t s = 0; s < members_.size(); ++s) {
      const auto result = std::find(results_.begin(), results_.end(), int(s));
      if (result != results_.end()) {
        place_[s] = first_result + int(result - results_.begin());
      } else if (needed_[s]) {
        auto& busy = busy_until[is_per_row(role_of(s))];
        std::size_t t = 0;
        while (t < busy.size() && busy[t] >= int(s)) ++t;
        if (t == busy.size()) busy.push_back(0);
        busy[t] = last_use[s];
        place_[s] = int(t);
      }
    }
    program_.temporaries = int(busy_until[0].size());
    program_.row_temporaries = int(busy_until[1].size());
    const int first_of_rows = first_temporary + program_.temporaries;
    for (std::size_t s = 0; s < members_.size(); ++s) {
      if (!needed_[s] || std::ranges::count(results_, int(s)) > 0) continue;
      place_[s] += is_per_row(role_of(s)) ? first_of_rows : first_temporary;
    }
  }

  void emit() {
    std::string names;
    for (std::size_t s = 0; s < members_.size(); ++s) {
      if (!needed_[s]) continue;
      const Node& node = node_of(s);
      const std::size_t last = node.op->block.kind == BlockFn::kRepeat ? 0 : node.inputs.size() - 1;
      FusedStep step{node.op->block,
                     graph_.type(node.inputs[last]).dtype,
                     graph_.type(node.outputs[0]).dtype,
                     {-1, -1, -1},
                     place_[s]};
      for (std::size_t k = 0; k < sources_[s].size(); ++k) {
        const OperandSource& source = sources_[s][k];
        step.in[k] = source.step >= 0 ? place_[std::size_t(source.step)] : source.operand;
      }
      program_.steps.push_back(step);
      names += (names.empty() ? "" : " ") + node.op->name;
    }
    for (const int s : results_) {
      program_.results.push_back(graph_.type(node_of(std::size_t(s)).outputs[0]).dtype);
      program_.roles.push_back(role_of(std::size_t(s)));
    }
    const char* const op = space_.axes > 0 ? "fused_rows" : "fused_elementwise";
    const Values made = make(op, FusedAttrs{{std::move(names)}, std::move(program_)});
    rewrite_.to().nodes.back().location = graph_.nodes[members_.back()].location;
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const Value old = node_of(std::size_t(results_[r])).outputs[0];
      rewrite_.to().values[made[r]].placement = graph_.placement(old);
      rewrite_.replace(old, made[r]);
    }
  }

  Values make(std::string_view op, Attrs attrs) {
    return rewrite_.builder().apply(OpRegistry::instance().get(op), operands_, std::move(attrs));
  }

  Rewriter& rewrite_;
  const Graph& graph_;
  const FusionGroups& groups_;
  const PerValue<int>& uses_;
  const std::vector<NodeId>& members_;
  const IterationSpace space_;
  Values operands_;
  std::vector<bool> needed_;  // per step: repeating is left out where it can be
  std::vector<std::vector<OperandSource>> sources_;  // per step
  std::vector<int> results_;                         // steps whose value leaves the group
  std::vector<int> place_;                           // per step: its register
  FusedProgram program_;
};

// A node alone takes the numbers that were spread for it; a group becomes a fused node.
void emit_group(Rewriter& rewrite, const FusionGroups& groups, const PerValue<int>& uses,
                const std::vector<NodeId>& members) {
  const Graph& graph = rewrite.from();
  const NodeId n = members[0];
  const Node& node = graph.nodes[n];
  const bool splat =
      node.op->has(kElementwise) && groups.space_of_group(n) &&
      std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value v) { return groups.splat(v); });
  if (members.size() == 1 && !splat) {
    rewrite.copy(node);
  } else {
    Fusion(rewrite, groups, uses, members).build();
  }
}

// Counts the nodes that read each value, each node once; outputs and writes count as well.
PerValue<int> count_readers(const Graph& graph) {
  PerValue<int> readers(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const auto end = node.inputs.begin() + std::ptrdiff_t(k);
      if (std::find(node.inputs.begin(), end, node.inputs[k]) == end) {
        ++readers[node.inputs[k]];
      }
    }
  }
  for (Value output : graph.outputs) ++readers[output];
  for (const StateWrite& write : graph.writes) ++readers[write.value];
  return readers;
}

// Kahn's order of the groups, as close to the old order as it goes.
class Order {
 public:
  explicit Order(const FusionGroups& groups) : groups_(groups), waits_(groups.members().size(), 0) {
    for (GroupId g : waits_.ids()) {
      each_reader(g, [&](GroupId other) { ++waits_[other]; });
    }
    for (GroupId g : waits_.ids()) offer(g);
  }

  template <class Visit>
  void walk(const Visit& visit) {
    while (!ready_.empty()) {
      const GroupId g = ready_.top().second;
      ready_.pop();
      visit(groups_.members()[g]);
      each_reader(g, [&](GroupId other) {
        --waits_[other];
        offer(other);
      });
    }
  }

 private:
  template <class Visit>
  void each_reader(GroupId group, const Visit& visit) const {
    for (NodeId node : groups_.members()[group]) {
      for (NodeId reader : groups_.readers(node)) {
        const GroupId other = groups_.group_of(reader);
        if (other != group) visit(other);
      }
    }
  }

  void offer(GroupId group) {
    const auto& members = groups_.members()[group];
    if (!members.empty() && waits_[group] == 0) ready_.emplace(members[0], group);
  }

  using Entry = std::pair<NodeId, GroupId>;  // first node, group
  const FusionGroups& groups_;
  IndexedVector<GroupId, int> waits_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
};

// The stages that rematerialization left in the nodes, or those of the graph as it is.
PerNode<int> take_stages(Graph& graph, const LeaveLoops& leave) {
  PerNode<int> stages;
  for (Node& node : graph.nodes) stages.push_back(std::exchange(node.stage, Node::kNoStage));
  const bool all = std::ranges::count(stages, Node::kNoStage) == 0;
  return all ? stages : assign_loops(graph, leave).stage;
}

}  // namespace

Graph fuse_elementwise(Graph graph, const LeaveLoops& leave) {
  const FusionGroups groups(graph, take_stages(graph, leave));
  const PerValue<int> readers = count_readers(graph);
  Rewriter rewrite(graph);
  Order(groups).walk(
      [&](const std::vector<NodeId>& members) { emit_group(rewrite, groups, readers, members); });
  return rewrite.finish();
}

}  // namespace samegrad
