// Assigns nodes to loops over the examples, and rematerializes values for a later loop.
#pragma once

#include "ir/graph.h"

namespace samegrad {

// Per node, as the scheduler counts (passes/stages.h), before anything leaves its loop.
PerNode<int> loop_stages(const Graph& graph);

struct StagedGraph {
  Graph graph;
  PerNode<int> stage;  // what is rematerialized has that of its readers
};

// A loop writes what a later one reads, and both through memory. Where the later one could make it
// of what it reads anyway (x - mean of x, say) by a few cheap operations, it does.
StagedGraph recompute_for_later_loops(Graph graph);

// Makes shape-only operands read another value of the same type: an operand, where the value is
// elementwise, or a value that is computed anyway, where it has no other reader.
Graph forward_types(Graph graph);

// Divides a reduction over the examples and the axes behind them, if it follows elementwise nodes.
// The first part reduces each example and can join their fused loop. The second reduces the
// examples.
Graph split_tree_reductions(Graph graph);

}  // namespace samegrad
