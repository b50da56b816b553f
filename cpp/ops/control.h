// Accessors of the regions of control-flow nodes.
#pragma once

#include "ir/graph.h"
#include "ops/attributes.h"

namespace samegrad {

using Regions = std::span<const GraphPtr>;

// Regions of cond.
inline const Graph& true_branch(Regions regions) {
  return *regions[0];
}
inline const Graph& false_branch(Regions regions) {
  return *regions[1];
}
// Regions of while_loop.
inline const Graph& condition(Regions regions) {
  return *regions[0];
}
inline bool is_condition(const Node& node, std::size_t region) {
  return region == 0 && node.attrs.get_if<WhileAttrs>();
}
// The body of while_loop and replay.
inline const Graph& body(Regions regions) {
  return *regions.back();
}

// The number of values that a loop carries; 0 for other nodes.
inline std::size_t carried_values(const Node& node) {
  const auto* iterations = node.attrs.get_if<RoundsAttrs>();
  return iterations ? std::size_t(iterations->variables) : 0;
}

// The argument of a loop's bodies at which their operands begin, behind entries of histories and
// variables.
inline std::size_t operands_at(const Node& loop) {
  std::size_t first = carried_values(loop);
  if (const auto* replay = loop.attrs.get_if<ReplayAttrs>()) {
    for (std::int64_t entries : replay->entries) first += std::size_t(entries);
  }
  return first;
}

}  // namespace samegrad
