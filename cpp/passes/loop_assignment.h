// Loop assignment: the nodes that run in loops over the examples, and the stage of each node.
// Elementwise fusion and the scheduler ask here.
#pragma once

#include "ir/graph.h"

namespace samegrad {

// The nodes that leave the loop that could run them, unless an option of the plan forbids it.
struct LeaveLoops {
  bool large_reductions = true;  // of which each leaf would pass through the whole result
  bool large_products = true;    // all rows at once, where a loop streams too many weights
};

struct LoopAssignment {
  PerNode<bool> in_loop;
  PerNode<bool> cut;    // products that left their loop
  PerNode<bool> joint;  // nodes that process the rows of all replicas as one list
  PerNode<int> stage;   // passes/loop_scheduling.h
  // Bytes of the weights of loops before products left, and afterwards.
  std::int64_t loop_weights = 0, kept_weights = 0;
};

LoopAssignment assign_loops(const Graph& graph, const LeaveLoops& leave = {});

}  // namespace samegrad
