// Loop assignment: the nodes that run in loops over the examples, and the stage of each node.
// Elementwise fusion and the scheduler ask here.
#pragma once

#include "ir/graph.h"

namespace samegrad {

// The nodes that may leave the loop that could run them. Fusion lets none leave: a fused node must
// not wait for a later loop than its parts did.
struct LeaveLoops {
  bool large_reductions = false;  // of which each leaf would pass through the whole result
  bool large_products = false;    // all rows at once, where a loop streams too many weights
};

struct LoopAssignment {
  PerNode<bool> in_loop;
  PerNode<bool> cut;    // products that left their loop
  PerNode<bool> joint;  // nodes that process the rows of all replicas as one list
  PerNode<int> stage;   // passes/stages.h
  // Bytes of the weights of loops before products left, and afterwards.
  std::int64_t loop_weights = 0, kept_weights = 0;
};

LoopAssignment assign_loops(const Graph& graph, const LeaveLoops& leave);

}  // namespace samegrad
