// The functions that run the kinds of steps. runtime/steps/ defines them: NodeStep and
// SideBySideStep in node.cpp, the others in a file each.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "plan/steps.h"
#include "runtime/execution_context.h"

namespace samegrad {

class Executable;
using Bodies = std::vector<std::unique_ptr<Executable>>;

// A step of a run.
struct StepRun {
  const Plan& plan;
  const StepId step;
  const ExecuteParams& call;
  ExecutionContext& context;
  const std::map<NodeId, Bodies>& bodies;  // of control nodes
};

void run_step(const NodeStep& step, const StepRun& run);
// Runs small nodes, a piece of them per thread.
void run_step(const SideBySideStep& step, const StepRun& run);
void run_step(const GroupedGemmStep& step, const StepRun& run);
void run_step(const LoopStep& step, const StepRun& run);
void run_step(const AllReduceStep& step, const StepRun& run);
void run_step(const BlockUpdateStep& step, const StepRun& run);
// Finds the named rows. Raises an error where an example names a row that does not exist.
void run_step(const SparseRowsStep& step, const StepRun& run);
// Reduces the blocks of the reduction order that have a named row, with the bits of the reduction
// of all rows. It goes through all rows where those without gradient change the result.
void run_step(const SparseReduceStep& step, const StepRun& run);
// Updates the named rows. It goes through all rows where those without gradient change: always, by
// the definition of the optimizer, or with the numbers of this run (an infinite rate, for example).
void run_step(const SparseUpdateStep& step, const StepRun& run);
// Runs a branch or a loop, for all replicas together.
void run_step(const ControlStep& step, const StepRun& run);

// Prepares the operands of the step's nodes.
void prepack_operands(const StepBase& step, const StepRun& run);
// Runs a collective that is not a sum: each replica's results are made of the values of all.
void exchange(const Plan& plan, const Node& node, const ExecuteParams& call,
              ExecutionContext& context);

}  // namespace samegrad
