// Placement: derives how the result of a node is placed on the replicas from the placements of its
// operands.
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

// Whether the node, no control flow, reads a value that is partial.
bool takes_parts(const Graph& graph, const Node& node);

// Whether the value is partial and more than one sum over the examples in some shape: adding it up
// over the replicas rounds otherwise than the function of the sums that one device computes. The
// share of a replicated value is such a function.
bool is_function_of_sums(const Graph& graph, Value value);

}  // namespace samegrad
