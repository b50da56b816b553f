// Elementwise nodes that feed each other become one node, which runs them block by block while the
// numbers are in L1. Numbers that were spread to a full shape (broadcast_like, full_like) enter as
// what they are.
#include <algorithm>
#include <queue>
#include <utility>

#include "base/thresholds.h"
#include "ops/attributes.h"
#include "ops/fused.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

bool is_full(const Graph& graph, Value value, const ValueType& type) {
  const ValueType& own = graph.type(value);
  return own.shape == type.shape && own.batch == type.batch;
}

bool is_number(const Graph& graph, Value value) {
  const ValueType& type = graph.type(value);
  return !type.batched() && !type.shape.symbolic() && type.shape.size() == 1;
}

// Per value: one number in a full shape, spread by a node that does nothing else, or made by an
// elementwise node of such values.
std::vector<bool> find_spread(const Graph& graph) {
  std::vector<bool> spread(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    const auto value = std::size_t(node.outputs[0]);
    if (is_number(graph, node.outputs[0])) continue;
    if (node.op->has(kSpread)) {
      spread[value] = !node.op->reads(0) || is_number(graph, node.inputs[0]);
    }
    if (node.op->block.kind == BlockFn::kNone) continue;
    spread[value] = std::ranges::all_of(node.inputs, [&](Value input) {
      return spread[std::size_t(input)] || is_number(graph, input);
    });
  }
  return spread;
}

bool is_fusible(const Graph& graph, const std::vector<bool>& spread, const Node& node) {
  if (node.op->block.kind == BlockFn::kNone || spread[std::size_t(node.outputs[0])]) return false;
  if (may_raise(graph, node)) return false;  // blocks are not checked
  const ValueType& type = graph.type(node.outputs[0]);
  return std::ranges::all_of(node.inputs, [&](Value input) {
    return is_full(graph, input, type) || is_number(graph, input);
  });
}

// Even between loops, odd inside them, as the scheduler counts: a fused node must not wait for a
// later loop than its parts did.
std::vector<int> stages(const Graph& graph) {
  std::vector<int> stage;
  for (const Node& node : graph.nodes) {
    const bool in_loop = node.locality != Locality::kWhole;
    stage.push_back(in_loop ? 1 : 0);
    for (Value input : node.inputs) {
      const Node* producer = graph.producer(input);
      if (!producer) continue;
      int earliest = stage[std::size_t(producer - graph.nodes.data())];
      if (producer->locality == Locality::kTree) {
        earliest += in_loop ? 2 : 1;
      } else if (in_loop != (producer->locality != Locality::kWhole)) {
        earliest += 1;
      }
      stage.back() = std::max(stage.back(), earliest);
    }
  }
  return stage;
}

// The partition of the nodes into groups; the graph of groups has no cycle.
class Groups {
 public:
  explicit Groups(const Graph& graph)
      : graph_(graph), spread_(find_spread(graph)), readers_(graph.nodes.size()) {
    const std::vector<int> stage = stages(graph);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      group_.push_back(std::int32_t(n));
      members_.push_back({std::int32_t(n)});
      const Node& node = graph.nodes[n];
      for (Value input : node.inputs) {
        const Node* producer = graph.producer(input);
        if (!producer) continue;
        auto& readers = readers_[index_of(*producer)];
        if (readers.empty() || readers.back() != std::int32_t(n))
          readers.push_back(std::int32_t(n));
      }
      fusible_.push_back(is_fusible(graph, spread_, node));
    }
    seen_.assign(graph.nodes.size(), 0);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      if (fusible_[n]) join(n, stage);
    }
  }

  const std::vector<std::vector<std::int32_t>>& members() const { return members_; }
  std::int32_t group_of(std::size_t node) const { return group_[node]; }
  bool fusible(std::size_t node) const { return fusible_[node]; }
  bool spread(Value value) const { return spread_[std::size_t(value)]; }
  std::size_t index_of(const Node& node) const { return std::size_t(&node - graph_.nodes.data()); }
  const std::vector<std::int32_t>& readers(std::size_t node) const { return readers_[node]; }

 private:
  static constexpr std::int32_t kNoGroup = -1;

  bool alike(const Node& a, const Node& b) const {
    const Value x = a.outputs[0], y = b.outputs[0];
    return is_full(graph_, x, graph_.type(y)) && graph_.placement(x) == graph_.placement(y) &&
           a.locality == b.locality;
  }

  // Takes the node into the groups of its operands.
  void join(std::size_t n, const std::vector<int>& stage) {
    const Node& node = graph_.nodes[n];
    for (Value input : node.inputs) {
      const Node* producer = graph_.producer(input);
      if (!producer || !fusible_[index_of(*producer)]) continue;
      const std::size_t p = index_of(*producer);
      if (stage[p] == stage[n] && alike(*producer, node)) try_merge(p, n);
    }
  }

  void try_merge(std::size_t p, std::size_t n) {
    const std::int32_t a = group_[p], b = group_[n];
    if (a == b) return;
    auto& first = members_[std::size_t(a)];
    auto& second = members_[std::size_t(b)];
    if (first.size() + second.size() > std::size_t(thresholds().fused_operations)) return;
    if (has_detour(a, b, n) || has_detour(b, a, n)) return;
    for (std::int32_t node : second) group_[std::size_t(node)] = a;
    first.insert(first.end(), second.begin(), second.end());
    std::sort(first.begin(), first.end());
    second.clear();
  }

  // Whether a path leads from one group to the other through a third. Nodes after `last` are in no
  // group yet, so no path comes back from there.
  bool has_detour(std::int32_t from, std::int32_t to, std::size_t last) {
    ++search_;
    std::vector<std::int32_t> open;
    const auto visit_readers = [&](std::int32_t of, std::int32_t but) {
      for (std::int32_t node : members_[std::size_t(of)]) {
        for (std::int32_t reader : readers_[std::size_t(node)]) {
          const std::int32_t group = group_[std::size_t(reader)];
          if (std::size_t(reader) > last || group == of || group == but) continue;
          if (std::exchange(seen_[std::size_t(group)], search_) != search_) open.push_back(group);
        }
      }
    };
    visit_readers(from, to);
    while (!open.empty()) {
      const std::int32_t group = open.back();
      open.pop_back();
      if (group == to) return true;
      visit_readers(group, kNoGroup);
    }
    return false;
  }

  const Graph& graph_;
  std::vector<bool> spread_;                        // per value
  std::vector<std::vector<std::int32_t>> readers_;  // per node
  std::vector<std::int32_t> group_;                 // per node
  std::vector<std::vector<std::int32_t>> members_;  // per group, in order
  std::vector<bool> fusible_;
  std::vector<std::int64_t> seen_;  // per group: the last search that came by
  std::int64_t search_ = 0;
};

// Makes the fused node of one group.
class Fusion {
 public:
  Fusion(Rewriter& rewrite, const Groups& groups, const std::vector<int>& uses,
         const std::vector<std::int32_t>& members)
      : rewrite_(rewrite),
        graph_(rewrite.from()),
        groups_(groups),
        uses_(uses),
        members_(members) {}

  void build() {
    collect();
    assign();
    emit();
  }

 private:
  static constexpr int kNowhere = -1;

  // An operand of a step: the step in the group that makes it, or an operand of the fused node.
  struct Source {
    int step = kNowhere;
    int operand = kNowhere;
  };

  int operand(Value fresh) {
    const auto at = std::find(operands_.begin(), operands_.end(), fresh);
    if (at == operands_.end()) operands_.push_back(fresh);
    return int(std::find(operands_.begin(), operands_.end(), fresh) - operands_.begin());
  }

  // The value, or the number that was spread to make it.
  Value outside(Value value) {
    if (!groups_.spread(value)) return rewrite_(value);
    const Node& producer = *graph_.producer(value);
    if (producer.op->has(kSpread)) {
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
    const auto at =
        std::find(members_.begin(), members_.end(), std::int32_t(groups_.index_of(*producer)));
    return at == members_.end() ? kNowhere : int(at - members_.begin());
  }

  void collect() {
    for (std::size_t s = 0; s < members_.size(); ++s) {
      const Node& node = graph_.nodes[std::size_t(members_[s])];
      std::vector<Source> sources;
      for (Value input : node.inputs) {
        Source source{step_of(input), kNowhere};
        if (source.step == kNowhere) source.operand = operand(outside(input));
        sources.push_back(source);
      }
      sources_.push_back(std::move(sources));
      if (leaves(members_[s])) results_.push_back(int(s));
    }
    // Nobody reads a dead group, which stays where dead nodes are kept.
    if (results_.empty()) results_.push_back(int(members_.size()) - 1);
  }

  // Whether somebody outside the group reads what the node makes.
  bool leaves(std::int32_t node) const {
    const auto& readers = groups_.readers(std::size_t(node));
    const auto inside = std::count_if(readers.begin(), readers.end(), [&](std::int32_t reader) {
      return groups_.group_of(std::size_t(reader)) == groups_.group_of(std::size_t(node));
    });
    return uses_[std::size_t(graph_.nodes[std::size_t(node)].outputs[0])] > inside;
  }

  // Registers: a result is written where it belongs.
  void assign() {
    const int first_result = int(operands_.size());
    const int first_temporary = first_result + int(results_.size());
    std::vector<int> last_use(members_.size(), 0);
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      for (const Source& source : sources_[s]) {
        if (source.step >= 0) last_use[std::size_t(source.step)] = int(s);
      }
    }
    std::vector<int> busy_until;  // per temporary
    for (std::size_t s = 0; s < members_.size(); ++s) {
      const auto result = std::find(results_.begin(), results_.end(), int(s));
      if (result != results_.end()) {
        place_.push_back(first_result + int(result - results_.begin()));
        continue;
      }
      std::size_t t = 0;
      while (t < busy_until.size() && busy_until[t] >= int(s)) ++t;
      if (t == busy_until.size()) busy_until.push_back(0);
      busy_until[t] = last_use[s];
      place_.push_back(first_temporary + int(t));
    }
    program_.temporaries = int(busy_until.size());
  }

  void emit() {
    std::string names;
    for (std::size_t s = 0; s < members_.size(); ++s) {
      const Node& node = graph_.nodes[std::size_t(members_[s])];
      FusedStep step{node.op->block,
                     graph_.type(node.inputs.back()).dtype,
                     graph_.type(node.outputs[0]).dtype,
                     {},
                     place_[s]};
      for (const Source& source : sources_[s]) {
        step.in.push_back(source.step >= 0 ? place_[std::size_t(source.step)] : source.operand);
      }
      program_.steps.push_back(std::move(step));
      names += (s ? " " : "") + node.op->name;
    }
    for (int s : results_) {
      program_.results.push_back(
          graph_.type(graph_.nodes[std::size_t(members_[std::size_t(s)])].outputs[0]).dtype);
    }
    const Values made = rewrite_.builder().apply(OpRegistry::instance().get("fused_elementwise"),
                                                 operands_, fused_attrs(program_, names));
    rewrite_.to().nodes.back().location = graph_.nodes[std::size_t(members_.back())].location;
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const auto node = std::size_t(members_[std::size_t(results_[r])]);
      const Value old = graph_.nodes[node].outputs[0];
      rewrite_.to().values[std::size_t(made[r])].placement = graph_.placement(old);
      rewrite_.replace(old, made[r]);
    }
  }

  Rewriter& rewrite_;
  const Graph& graph_;
  const Groups& groups_;
  const std::vector<int>& uses_;
  const std::vector<std::int32_t>& members_;
  Values operands_;
  std::vector<std::vector<Source>> sources_;  // per step
  std::vector<int> results_;                  // steps whose value leaves the group
  std::vector<int> place_;                    // per step: its register
  FusedProgram program_;
};

// A node alone takes the numbers that were spread for it; a group becomes a fused node.
void emit_group(Rewriter& rewrite, const Groups& groups, const std::vector<int>& uses,
                const std::vector<std::int32_t>& members) {
  const Graph& graph = rewrite.from();
  const auto n = std::size_t(members[0]);
  const Node& node = graph.nodes[n];
  const bool spread = groups.fusible(n) && std::any_of(node.inputs.begin(), node.inputs.end(),
                                                       [&](Value v) { return groups.spread(v); });
  if (members.size() == 1 && !spread) {
    rewrite.copy(node);
  } else {
    Fusion(rewrite, groups, uses, members).build();
  }
}

// How many nodes read a value, each counted once; outputs and writes too.
std::vector<int> count_readers(const Graph& graph) {
  std::vector<int> readers(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const auto end = node.inputs.begin() + std::ptrdiff_t(k);
      if (std::find(node.inputs.begin(), end, node.inputs[k]) == end) {
        ++readers[std::size_t(node.inputs[k])];
      }
    }
  }
  for (Value output : graph.outputs) ++readers[std::size_t(output)];
  for (const StateWrite& write : graph.writes) ++readers[std::size_t(write.value)];
  return readers;
}

// Kahn's order of the groups, as close to the old order as it goes.
class Order {
 public:
  explicit Order(const Groups& groups) : groups_(groups), waits_(groups.members().size(), 0) {
    for (std::size_t g = 0; g < waits_.size(); ++g) {
      each_reader(g, [&](std::size_t other) { ++waits_[other]; });
    }
    for (std::size_t g = 0; g < waits_.size(); ++g) offer(g);
  }

  template <class Visit>
  void walk(const Visit& visit) {
    while (!ready_.empty()) {
      const std::size_t g = ready_.top().second;
      ready_.pop();
      visit(groups_.members()[g]);
      each_reader(g, [&](std::size_t other) {
        --waits_[other];
        offer(other);
      });
    }
  }

 private:
  template <class Visit>
  void each_reader(std::size_t group, const Visit& visit) const {
    for (std::int32_t node : groups_.members()[group]) {
      for (std::int32_t reader : groups_.readers(std::size_t(node))) {
        const std::int32_t other = groups_.group_of(std::size_t(reader));
        if (other != std::int32_t(group)) visit(std::size_t(other));
      }
    }
  }

  void offer(std::size_t group) {
    const auto& members = groups_.members()[group];
    if (!members.empty() && waits_[group] == 0) ready_.emplace(members[0], group);
  }

  using Entry = std::pair<std::int32_t, std::size_t>;  // first node, group
  const Groups& groups_;
  std::vector<int> waits_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
};

}  // namespace

Graph fuse_elementwise(Graph graph) {
  const Groups groups(graph);
  const std::vector<int> readers = count_readers(graph);
  Rewriter rewrite(graph);
  Order(groups).walk([&](const std::vector<std::int32_t>& members) {
    emit_group(rewrite, groups, readers, members);
  });
  return rewrite.finish();
}

}  // namespace samegrad
