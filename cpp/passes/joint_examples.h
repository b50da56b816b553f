// Joint examples: nodes that process the examples of all replicas of a process as one list. A sum
// over examples is then one tree over the global batch, however it is divided among replicas.
#pragma once

#include "ir/graph.h"

namespace samegrad {

// The nodes that may: they read rows and replicated values alone, and make rows, or a sum over the
// examples that an all-reduce reads. None where there is one replica.
PerNode<bool> joint_nodes(const Graph& graph);

// The values that are, in memory, one sum over the rows of all replicas of a process: results of
// joint reductions, and their aliases.
PerValue<bool> joint_sums(const Graph& graph, const PerNode<bool>& joint);

// Sums over the examples that an all-reduce reads and others too are made twice: as the term of
// the all-reduce, and of each replica's own examples for the others.
Graph separate_partials(Graph graph);

}  // namespace samegrad
