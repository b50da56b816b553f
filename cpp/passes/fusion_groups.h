// Which nodes become one fused loop.
#pragma once

#include <vector>

#include "passes/row_space.h"

namespace samegrad {

// The partition of the nodes into groups; the graph of groups has no cycle.
class FusionGroups {
 public:
  explicit FusionGroups(const Graph& graph);

  const std::vector<std::vector<std::int32_t>>& members() const { return members_; }
  std::int32_t group_of(std::size_t node) const { return group_[node]; }
  // What the group of a node goes through, if nodes are fused there.
  const std::optional<RowSpace>& space_of_group(std::size_t node) const {
    return space_[std::size_t(group_[node])];
  }
  // Per value: one number in a full shape.
  const std::vector<bool>& spread() const { return spread_; }
  bool spread(Value value) const { return spread_[std::size_t(value)]; }
  std::size_t index_of(const Node& node) const { return std::size_t(&node - graph_.nodes.data()); }
  const std::vector<std::int32_t>& readers(std::size_t node) const { return readers_[node]; }

 private:
  bool alike(const Node& a, const Node& b) const;
  void join(std::size_t n, const std::vector<int>& stage);
  void try_merge(std::size_t p, std::size_t n);
  bool fits(std::int32_t group, std::int32_t other, const RowSpace& space) const;
  bool has_detour(std::int32_t from, std::int32_t to, std::size_t last);

  const Graph& graph_;
  std::vector<bool> spread_;                        // per value
  std::vector<std::vector<std::int32_t>> readers_;  // per node
  std::vector<std::int32_t> group_;                 // per node
  std::vector<std::vector<std::int32_t>> members_;  // per group, in order
  std::vector<std::optional<RowSpace>> space_;      // per group
  std::vector<std::int64_t> seen_;                  // per group: the last search that came by
  std::int64_t search_ = 0;
};

}  // namespace samegrad
