// Where the result of a node stands on the replicas, from where its operands do.
#pragma once

#include "ir/op_def.h"

namespace samegrad {

// Of one result of a node whose operands are in the graph.
Placement placement_of(const Graph& graph, const Node& node, const Inferred& inferred,
                       std::size_t result);

// Of a value that is one of the two, the same on all replicas: what branches and rounds make.
Placement joined(Placement a, Placement b);

// Whether the node is a linear function of its operands that are partial, the others being equal on
// all replicas.
bool is_linear_in_partial(const Graph& graph, const Node& node);

}  // namespace samegrad
