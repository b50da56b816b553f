// Placement: derives how the result of a node is placed on the replicas from the placements of its
// operands.
#pragma once

#include "ir/op_def.h"

namespace samegrad {

// The placement of one result of a node whose operands are in the graph.
Placement placement_of(const Graph& graph, const Node& node, const Inferred& inferred,
                       std::size_t result);

// The placement of a value that is one of two, chosen alike on all replicas: the result of a branch
// or an iteration.
Placement joined(Placement a, Placement b);

// True if the node is a linear function of its partial operands, and its other operands are
// replicated.
bool is_linear_in_partial(const Graph& graph, const Node& node);

// True if the node is not control flow and reads a partial value.
bool takes_parts(const Graph& graph, const Node& node);

// True if the value is partial and more than one sum over the examples in some shape. Its sum over
// the replicas is then rounded differently from the function of sums that one device computes. A
// replica's part of a replicated value is such a function.
bool is_function_of_sums(const Graph& graph, Value value);

}  // namespace samegrad
