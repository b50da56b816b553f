// The graphs that nodes run: all that walks or rewrites programs goes into them by these.
#pragma once

#include <memory>
#include <utility>

#include "ir/graph.h"

namespace samegrad {

// Every node of the graph, each before those of its regions: visit(graph, node).
template <class Visit>
void walk_nodes(const Graph& graph, const Visit& visit) {
  for (const Node& node : graph.nodes) {
    visit(graph, node);
    for (const GraphPtr& region : node.regions) walk_nodes(*region, visit);
  }
}

// Gives the node regions of its own, each a copy that has been changed: change(graph).
template <class Change>
void change_regions(Node& node, const Change& change) {
  for (GraphPtr& region : node.regions) {
    Graph own = *region;
    change(own);
    region = std::make_shared<const Graph>(std::move(own));
  }
}

}  // namespace samegrad
