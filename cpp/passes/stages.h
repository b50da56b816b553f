// Loop scheduling: assigns each node of a graph to a loop over the examples, or between two loops.
#pragma once

#include <compare>

#include "ir/graph.h"

namespace samegrad {

// Even stages hold whole nodes, odd ones loops. A node runs as early as its operands are there, but
// what no loop needs before a later one runs in the later one, where less passes between the two
// through memory that way: a loss that is divided by the number of all tokens has its forward pass
// in the loop of its backward pass, and only the tokens are counted before.
//
// Args:
//   in_loop: What runs in loops: one for each symbol of examples, in a stage.
PerNode<int> stages_of(const Graph& graph, const PerNode<bool>& in_loop);

// The symbol of the examples that a node of a loop goes through; -1: none.
int symbol_of_examples(const Graph& graph, const Node& node);

// Which loop of a stage a node is in: that of a symbol, and of each replica for itself, as what it
// makes varies or what it reads, or of all alike; of the replicas' rows as one list where the node
// is joint (passes/joint_rows.h).
struct LoopKey {
  int symbol;
  bool varies;
  bool joint;
  auto operator<=>(const LoopKey&) const = default;
};
LoopKey loop_key(const Graph& graph, const Node& node, bool joint);

}  // namespace samegrad
