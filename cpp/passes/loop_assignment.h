// Loop assignment: the nodes that run in loops over the examples, and the stage of each node.
// Elementwise fusion and the scheduler ask here.
#pragma once

#include "ir/graph.h"
#include "passes/passes.h"

namespace samegrad {

struct LoopAssignment {
  PerNode<bool> in_loop;
  PerNode<bool> cut;    // products that left their loop
  PerNode<bool> joint;  // nodes that process the rows of all replicas as one list
  PerNode<int> stage;   // passes/loop_scheduling.h
  // Bytes of the weights of loops before products left, and afterwards.
  std::int64_t loop_weights = 0, kept_weights = 0;
};

LoopAssignment assign_loops(const Graph& graph, const LeaveLoops& leave);

}  // namespace samegrad
