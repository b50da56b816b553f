// A product of the rows of all replicas with one matrix.
#include "base/thresholds.h"
#include "runtime/executor.h"
#include "runtime/threads.h"

namespace samegrad {

void run_step(const GroupedGemmStep& step, const StepRun& run) {
  const Plan& plan = run.plan;
  const ExecuteParams& call = run.call;
  ExecutionContext& context = run.context;
  const NodeId index = step.nodes[0];
  const Node& node = plan.graph.nodes[index];
  const NodeBinding& binding = context.node(index);
  std::vector<std::span<const View>> replicas;
  for (std::size_t r = 0; r < binding.views.size(); ++r) {
    const bool here = binding.makes_rows || !call.is_halo(int(r));
    const bool runs = binding.views.size() == 1 || (here && call.runs(int(r)));
    if (runs) replicas.emplace_back(binding.views[r]);
  }
  Scratch& scratch = context.main_task().scratch;
  const Scratch::Frame frame(scratch);
  const bool big = binding.most_bytes > thresholds().parallel_replica_bytes;
  const std::int32_t slot = plan.prepacked_slot[index];
  const void* prepacked = slot < 0 ? nullptr : context.prepacked(slot, 0);
  const ParallelFor& loops = big ? parallel_loops() : serial_loops();
  node.op->grouped.run({node.attrs, replicas, scratch, loops, prepacked});
  if (!call.check_finite) return;
  for (std::size_t r = 0; r < binding.views.size(); ++r) {
    if (binding.views.size() > 1 && !call.runs(int(r))) continue;
    check_finite(node, binding.views[r].back(), context.of_replica(int(r)).replica);
  }
}

}  // namespace samegrad
