#include "passes/fusion_groups.h"

#include <algorithm>
#include <utility>

#include "base/thresholds.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

constexpr std::int32_t kNoGroup = -1;

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
    if (!node.op->has(kElementwise)) continue;
    spread[value] = std::ranges::all_of(node.inputs, [&](Value input) {
      return spread[std::size_t(input)] || is_number(graph, input);
    });
  }
  return spread;
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

}  // namespace

FusionGroups::FusionGroups(const Graph& graph)
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
      if (readers.empty() || readers.back() != std::int32_t(n)) readers.push_back(std::int32_t(n));
    }
    // Blocks are not checked, and a number in a full shape is none of a loop's.
    const bool fusible = !may_raise(graph, node) && !spread(node.outputs[0]);
    space_.push_back(fusible ? space_of(graph, spread_, node) : std::nullopt);
  }
  seen_.assign(graph.nodes.size(), 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (space_[n]) join(n, stage);
  }
}

bool FusionGroups::alike(const Node& a, const Node& b) const {
  return graph_.placement(a.outputs[0]) == graph_.placement(b.outputs[0]) &&
         a.locality == b.locality;
}

// Takes the node into the groups of its operands.
void FusionGroups::join(std::size_t n, const std::vector<int>& stage) {
  const Node& node = graph_.nodes[n];
  for (Value input : node.inputs) {
    const Node* producer = graph_.producer(input);
    if (!producer || !space_of_group(index_of(*producer))) continue;
    const std::size_t p = index_of(*producer);
    if (stage[p] == stage[n] && alike(*producer, node)) try_merge(p, n);
  }
}

void FusionGroups::try_merge(std::size_t p, std::size_t n) {
  const std::int32_t a = group_[p], b = group_[n];
  if (a == b) return;
  auto& first = members_[std::size_t(a)];
  auto& second = members_[std::size_t(b)];
  if (first.size() + second.size() > std::size_t(thresholds().fused_operations)) return;
  const auto space = joined(*space_[std::size_t(a)], *space_[std::size_t(b)]);
  if (!space || (space->axes > 0 && !fits(a, b, *space))) return;
  if (has_detour(a, b, n) || has_detour(b, a, n)) return;
  for (std::int32_t node : second) group_[std::size_t(node)] = a;
  first.insert(first.end(), second.begin(), second.end());
  std::sort(first.begin(), first.end());
  second.clear();
  space_[std::size_t(a)] = space;
}

// Whether all nodes of both groups are made row by row there, and read what others of them make as
// what it is.
bool FusionGroups::fits(std::int32_t group, std::int32_t other, const RowSpace& space) const {
  const auto inside = [&](const Node* node) {
    if (!node) return false;
    const std::int32_t of = group_[index_of(*node)];
    return of == group || of == other;
  };
  const auto reads_what_is_made = [&](const Node& node, std::size_t k) {
    const auto role = role_of_operand(graph_, spread_, space, node, k);
    if (!role || !inside(graph_.producer(node.inputs[k]))) return role.has_value();
    const FusedRole made = *role_of_result(space, graph_.type(node.inputs[k]));
    return made == *role || (is_per_row(made) && is_per_row(*role)) || *role == FusedRole::kNumber;
  };
  for (const std::int32_t of : {group, other}) {
    for (const std::int32_t member : members_[std::size_t(of)]) {
      const Node& node = graph_.nodes[std::size_t(member)];
      if (!role_of_result(space, graph_.type(node.outputs[0]))) return false;
    }
  }
  for (const std::int32_t of : {group, other}) {
    for (const std::int32_t member : members_[std::size_t(of)]) {
      const Node& node = graph_.nodes[std::size_t(member)];
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.op->reads(k) && !reads_what_is_made(node, k)) return false;
      }
    }
  }
  return true;
}

// Whether a path leads from one group to the other through a third. Nodes after `last` are in no
// group yet, so no path comes back from there.
bool FusionGroups::has_detour(std::int32_t from, std::int32_t to, std::size_t last) {
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

}  // namespace samegrad
