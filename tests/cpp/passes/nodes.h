// Counts the nodes of a graph.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace samegrad::testing {

inline std::ptrdiff_t count(const Graph& graph, std::string_view op) {
  return std::ranges::count_if(graph.nodes, [&](const Node& n) { return n.op->name == op; });
}

}  // namespace samegrad::testing
