#include "passes/fusion_groups.h"

#include <algorithm>
#include <utility>

#include "base/thresholds.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

constexpr GroupId kNoGroup;

// Per value: one number in a full shape, spread by a node that does nothing else, or made by an
// elementwise node of such values.
PerValue<bool> find_splats(const Graph& graph) {
  PerValue<bool> splat(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    const Value value = node.outputs[0];
    if (is_scalar(graph, node.outputs[0])) continue;
    if (node.op->has(kSplat)) {
      splat[value] = !node.op->reads(0) || is_scalar(graph, node.inputs[0]);
    }
    if (!node.op->has(kElementwise)) continue;
    splat[value] = std::ranges::all_of(
        node.inputs, [&](Value input) { return splat[input] || is_scalar(graph, input); });
  }
  return splat;
}

}  // namespace

FusionGroups::FusionGroups(const Graph& graph, const PerNode<int>& stage)
    : graph_(graph), splat_(find_splats(graph)), readers_(graph.nodes.size()) {
  for (NodeId n : graph.nodes.ids()) {
    group_.push_back(members_.push_back({n}));
    const Node& node = graph.nodes[n];
    for (Value input : node.inputs) {
      const Node* producer = graph.producer(input);
      if (!producer) continue;
      auto& readers = readers_[id_of(*producer)];
      if (readers.empty() || readers.back() != n) readers.push_back(n);
    }
    // Blocks are not checked, and a number in a full shape is none of a loop's.
    const bool fusible = !may_raise(graph, node) && !splat(node.outputs[0]);
    space_.push_back(fusible ? space_of(graph, splat_, node) : std::nullopt);
  }
  number_forest();
  seen_.assign(graph.nodes.size(), 0);
  for (NodeId n : graph.nodes.ids()) {
    if (space_[group_[n]]) join(n, stage);
  }
}

void FusionGroups::number_forest() {
  PerNode<NodeId> above(graph_.nodes.size());
  for (NodeId n : graph_.nodes.ids()) {
    for (NodeId reader : readers_[n]) above[reader] = n;  // the last one stays
  }
  below_.assign(graph_.nodes.size(), 1);
  for (NodeId n : graph_.nodes.ids().reversed()) {
    if (above[n].exists()) below_[above[n]] += below_[n];
  }
  place_.assign(graph_.nodes.size(), 0);
  PerNode<std::int32_t> next(graph_.nodes.size());
  std::int32_t roots = 0;
  for (NodeId n : graph_.nodes.ids()) {
    std::int32_t& free = above[n].exists() ? next[above[n]] : roots;
    place_[n] = free;
    free += below_[n];
    next[n] = place_[n] + 1;
  }
}

bool FusionGroups::alike(const Node& a, const Node& b) const {
  return graph_.placement(a.outputs[0]) == graph_.placement(b.outputs[0]) &&
         a.locality == b.locality;
}

// Takes the node into the groups of its operands.
void FusionGroups::join(NodeId n, const PerNode<int>& stage) {
  const Node& node = graph_.nodes[n];
  for (Value input : node.inputs) {
    const Node* producer = graph_.producer(input);
    if (!producer || !space_of_group(id_of(*producer))) continue;
    const NodeId p = id_of(*producer);
    if (stage[p] == stage[n] && alike(*producer, node)) try_merge(p, n);
  }
}

void FusionGroups::try_merge(NodeId p, NodeId n) {
  const GroupId a = group_[p], b = group_[n];
  if (a == b) return;
  auto& first = members_[a];
  auto& second = members_[b];
  if (first.size() + second.size() > std::size_t(thresholds().fused_operations)) return;
  const auto space = joined(*space_[a], *space_[b]);
  if (!space || (space->axes > 0 && !fits(a, b, *space))) return;
  if (would_create_cycle(a, b, n) || would_create_cycle(b, a, n)) return;
  for (NodeId node : second) group_[node] = a;
  first.insert(first.end(), second.begin(), second.end());
  std::sort(first.begin(), first.end());
  second.clear();
  space_[a] = space;
}

// True if all nodes of both groups are computed row by row in the space. Results that they read of
// each other must have the roles in which they are read.
bool FusionGroups::fits(GroupId group, GroupId other, const IterationSpace& space) const {
  const auto inside = [&](const Node* node) {
    if (!node) return false;
    const GroupId of = group_[id_of(*node)];
    return of == group || of == other;
  };
  const auto reads_what_is_made = [&](const Node& node, std::size_t k) {
    const auto role = broadcast_of_operand(graph_, splat_, space, node, k);
    if (!role || !inside(graph_.producer(node.inputs[k]))) return role.has_value();
    const BroadcastKind made = *broadcast_of_result(space, graph_.type(node.inputs[k]));
    return made == *role || (is_per_row(made) && is_per_row(*role)) ||
           *role == BroadcastKind::kScalar;
  };
  for (const GroupId of : {group, other}) {
    for (const NodeId member : members_[of]) {
      const Node& node = graph_.nodes[member];
      if (!broadcast_of_node(graph_, space, node)) return false;
    }
  }
  for (const GroupId of : {group, other}) {
    for (const NodeId member : members_[of]) {
      const Node& node = graph_.nodes[member];
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.op->reads(k) && !reads_what_is_made(node, k)) return false;
      }
    }
  }
  return true;
}

// True if a path leads from one group to the other through a third, searched upwards from `to`.
// Absent if many groups are before `to`.
std::optional<bool> FusionGroups::has_detour_before(GroupId from, GroupId to) {
  constexpr std::size_t kFewGroups = 32;
  ++search_;
  std::vector<GroupId> open;
  const auto visit_operands = [&](GroupId of) {
    for (NodeId node : members_[of]) {
      for (Value input : graph_.nodes[node].inputs) {
        const Node* producer = graph_.producer(input);
        if (!producer) continue;
        const GroupId group = group_[id_of(*producer)];
        if (group == of || (of == to && group == from)) continue;
        if (std::exchange(seen_[group], search_) != search_) open.push_back(group);
      }
    }
  };
  visit_operands(to);
  for (std::size_t next = 0; next < open.size(); ++next) {
    if (open[next] == from) return true;
    if (next == kFewGroups) return std::nullopt;
    visit_operands(open[next]);
  }
  return false;
}

// True if a path leads from one group to the other through a third. Nodes after `last` are in no
// group yet, so no path returns from there.
bool FusionGroups::would_create_cycle(GroupId from, GroupId to, NodeId last) {
  // Long ways, as through the layers of a deep network, are found in the forest.
  for (NodeId node : members_[from]) {
    for (NodeId reader : readers_[node]) {
      const GroupId group = group_[reader];
      if (reader > last || group == from || group == to) continue;
      const auto below = [&](NodeId member) { return is_below(member, reader); };
      if (std::ranges::any_of(members_[to], below)) return true;
    }
  }
  if (const auto found = has_detour_before(from, to)) return *found;
  ++search_;
  std::vector<GroupId> open;
  const auto visit_readers = [&](GroupId of, GroupId but) {
    for (NodeId node : members_[of]) {
      for (NodeId reader : readers_[node]) {
        const GroupId group = group_[reader];
        if (reader > last || group == of || group == but) continue;
        if (std::exchange(seen_[group], search_) != search_) open.push_back(group);
      }
    }
  };
  visit_readers(from, to);
  while (!open.empty()) {
    const GroupId group = open.back();
    open.pop_back();
    if (group == to) return true;
    visit_readers(group, kNoGroup);
  }
  return false;
}

}  // namespace samegrad
