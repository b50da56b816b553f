// Fusion groups: the sets of nodes that become one fused loop.
#pragma once

#include <optional>
#include <vector>

#include "passes/iteration_space.h"

namespace samegrad {

using GroupId = Id<struct FusionGroup>;

// The partition of the nodes into groups; the graph of groups has no cycle.
class FusionGroups {
 public:
  // With the stage of each node: nodes of one are fused.
  FusionGroups(const Graph& graph, const PerNode<int>& stage);

  const IndexedVector<GroupId, std::vector<NodeId>>& members() const { return members_; }
  GroupId group_of(NodeId node) const { return group_[node]; }
  // The iteration space of the node's group, if nodes are fused there.
  const std::optional<IterationSpace>& space_of_group(NodeId node) const {
    return space_[group_[node]];
  }
  // Per value: one number in a full shape.
  const PerValue<bool>& splat() const { return splat_; }
  bool splat(Value value) const { return splat_[value]; }
  NodeId id_of(const Node& node) const { return graph_.nodes.id_of(node); }
  const std::vector<NodeId>& readers(NodeId node) const { return readers_[node]; }

 private:
  bool alike(const Node& a, const Node& b) const;
  void join(NodeId n, const PerNode<int>& stage);
  void try_merge(NodeId p, NodeId n);
  bool fits(GroupId group, GroupId other, const IterationSpace& space) const;
  bool would_create_cycle(GroupId from, GroupId to, NodeId last);
  std::optional<bool> has_detour_before(GroupId from, GroupId to);
  void number_forest();
  // True if one node is below the other in the forest; a node that is not may still be reached.
  bool is_below(NodeId node, NodeId above) const {
    return place_[above] <= place_[node] && place_[node] < place_[above] + below_[above];
  }

  const Graph& graph_;
  PerValue<bool> splat_;
  PerNode<std::vector<NodeId>> readers_;
  PerNode<GroupId> group_;
  IndexedVector<GroupId, std::vector<NodeId>> members_;  // in order
  IndexedVector<GroupId, std::optional<IterationSpace>> space_;
  // In the forest where each node hangs below the last of its operands, from above: the place of a
  // node, and how many there are from it downwards.
  PerNode<std::int32_t> place_, below_;
  IndexedVector<GroupId, std::int64_t> seen_;  // the last search that came by
  std::int64_t search_ = 0;
};

}  // namespace samegrad
