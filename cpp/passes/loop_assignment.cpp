#include "passes/loop_assignment.h"

#include <algorithm>

#include "ir/op_def.h"
#include "passes/joint_examples.h"
#include "passes/loop_costs.h"
#include "passes/loop_scheduling.h"

namespace samegrad {
namespace {

// Tiles are rows of axis 0, and their sizes are equal on all replicas.
bool examples_come_first(const Graph& graph, const Node& node) {
  const auto first = [&](Value value) {
    const ValueType& type = graph.type(value);
    return (!type.batched() || type.batch.axis == 0) && !type.shape.symbolic();
  };
  return std::ranges::all_of(node.inputs, first) && std::ranges::all_of(node.outputs, first);
}

bool can_be_in_loop(const Graph& graph, const Node& node) {
  return has_tiles(node.locality) && !node.op->has(kCollective) &&
         symbol_of_examples(graph, node) >= 0 && examples_come_first(graph, node);
}

}  // namespace

LoopAssignment assign_loops(const Graph& graph, const LeaveLoops& leave) {
  LoopAssignment loops;
  for (const Node& node : graph.nodes) {
    const bool leaves = leave.large_reductions && node.locality == Locality::kBatchReduction &&
                        is_cheaper_after_loop(graph, node);
    loops.in_loop.push_back(can_be_in_loop(graph, node) && !leaves);
  }
  loops.cut.resize(graph.nodes.size());
  if (leave.large_products) loops.cut = products_to_group(graph, loops.in_loop);
  loops.loop_weights = streamed_weights(graph, loops.in_loop);
  for (NodeId n : graph.nodes.ids()) {
    if (loops.cut[n]) loops.in_loop[n] = false;
  }
  loops.kept_weights = streamed_weights(graph, loops.in_loop);
  loops.joint = joint_nodes(graph);
  loops.stage = stages_of(graph, loops.in_loop, loops.joint);
  return loops;
}

}  // namespace samegrad
