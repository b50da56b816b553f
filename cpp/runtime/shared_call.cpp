#include "runtime/shared_call.h"

#include <algorithm>

#include "base/thresholds.h"
#include "ir/op_def.h"
#include "plan/cost.h"

namespace samegrad {
namespace {

// The arguments of the call in one thread, or of one part, with scratch of its own.
KernelArgs of_part(const KernelArgs& args, std::byte* state, Scratch& scratch) {
  return {.attrs = args.attrs,
          .in = args.in,
          .out = args.out,
          .examples = args.examples,
          .first_example = args.first_example,
          .symbol = args.symbol,
          .replica_context = args.replica_context,
          .prepacked = args.prepacked,
          .scratch = scratch,
          .state = state,
          .far_operands = args.far_operands};
}

}  // namespace

void run_shared(const Node& node, const KernelArgs& args) {
  if (!args.parallel) return node.op->kernel(args);
  const ParallelFor& loops = *args.parallel;
  const CostArgs shapes{args.attrs, args.in, args.out};
  const Scratch::Frame frame(args.scratch);
  if (!should_parallelize(*node.op, shapes)) {
    return node.op->kernel(of_part(args, nullptr, args.scratch));
  }
  const ParallelPartition& parts = node.op->parts;
  const std::int64_t units = parts.run ? parts.count(shapes) : 1;
  const std::int64_t tasks = std::min(units, thresholds().parts_per_thread * loops.threads());
  if (tasks < 2) return node.op->kernel(args);
  const std::size_t bytes = parts.state_bytes ? parts.state_bytes(shapes) : 0;
  auto* state = bytes > 0 ? static_cast<std::byte*>(args.scratch.take(bytes)) : nullptr;
  const auto run_part = [&](std::int64_t i) {
    Scratch own;
    parts.run(of_part(args, state, own), units * i / tasks, units * (i + 1) / tasks);
  };
  loops.run(tasks, [&run_part](std::int64_t i) { run_part(i); });  // small: nothing is allocated
  if (parts.finish) parts.finish(of_part(args, state, args.scratch));
}

}  // namespace samegrad
