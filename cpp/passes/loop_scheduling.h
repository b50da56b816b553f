// Loop scheduling: assigns each node of a graph to a loop over the examples, or between two loops.
#pragma once

#include <compare>

#include "ir/graph.h"

namespace samegrad {

// Even stages hold whole nodes, odd ones loops. A node runs as soon as its operands are available.
// It runs in a later loop if no earlier one needs it, and less data passes between the loops that
// way. For instance, a loss divided by the number of all tokens has its forward pass in the loop of
// its backward pass. Only the tokens are counted before.
//
// Args:
//   in_loop: What runs in loops: one for each symbol of examples, in a stage.
//   joint: Nodes that process the rows of all replicas as one list (passes/joint_examples.h).
PerNode<int> stages_of(const Graph& graph, const PerNode<bool>& in_loop,
                       const PerNode<bool>& joint);

// The symbol of the examples that a node of a loop goes through; -1: none.
int symbol_of_examples(const Graph& graph, const Node& node);

// The loop of a stage that a node belongs to. Its examples are those of a symbol. It runs on each
// replica if its results or operands vary, and once otherwise. Joint nodes
// (passes/joint_examples.h) run over the replicas' rows as one list.
struct LoopKey {
  int symbol;
  bool varies;
  bool joint;
  auto operator<=>(const LoopKey&) const = default;
};
LoopKey loop_key(const Graph& graph, const Node& node, bool joint);

}  // namespace samegrad
