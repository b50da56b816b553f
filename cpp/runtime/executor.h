// Runs plans: replicas, tiles, all-reduce, updates.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/synchronized.h"
#include "plan/explain.h"
#include "plan/plan.h"
#include "runtime/check_finite.h"
#include "runtime/execute_params.h"
#include "runtime/execution_context.h"
#include "runtime/step_run.h"

namespace samegrad {

class Executable {
 public:
  explicit Executable(std::shared_ptr<const Plan> plan);
  explicit Executable(Plan plan) : Executable(std::make_shared<const Plan>(std::move(plan))) {}

  const Plan& plan() const { return plan_; }
  // One array per output, or one per replica where replicas differ. May run in several threads at
  // once; steps that write variables take turns.
  std::vector<PerReplica<Array>> run(const ExecuteParams& call);
  // Memory between the steps of such a run.
  struct ArenaBytes {
    std::int64_t planned = 0, unshared = 0;  // unshared: if each value had its own
  };
  ArenaBytes arena_bytes(const ExecuteParams& call);
  // The statistics of a run with these counts; with `runs` > 0, the times of that many runs on
  // copies of the variables.
  RunStatistics statistics_of(const ExecuteParams& call, int runs);

 private:
  // The context of one run, bound to its counts: finish() gives it back, and a run that fails
  // leaves it to be destroyed.
  class ContextLease {
   public:
    ContextLease(Executable& executable, const ExecuteParams& call);
    ~ContextLease();
    ContextLease(const ContextLease&) = delete;
    ContextLease& operator=(const ContextLease&) = delete;
    ExecutionContext& operator*() const { return *context_; }
    void finish();

   private:
    ContextLease(Executable& executable, const ExecuteParams& call, int threads);

    Executable& executable_;
    std::unique_ptr<ExecutionContext> context_;
  };

  std::vector<PerReplica<Array>> run_in_world(const ExecuteParams& call);
  std::vector<PerReplica<Array>> run_here(const ExecuteParams& call);
  std::vector<PerReplica<Array>> run(const ExecuteParams& call, ExecutionContext& context);
  void set_arguments(const ExecuteParams& call, ExecutionContext& context);
  std::vector<PerReplica<Array>> make_outputs(const ExecuteParams& call, ExecutionContext& context);
  void copy_outputs(std::vector<PerReplica<Array>>& outputs, ExecutionContext& context);
  std::vector<Array> make_state(const ExecuteParams& call, ExecutionContext& context);
  void commit_state(const ExecuteParams& call, ExecutionContext& context,
                    std::vector<Array>& fresh);
  void run_step(StepId s, const ExecuteParams& call, ExecutionContext& context);
  void run_steps(const ExecuteParams& call, ExecutionContext& context);
  std::vector<double> predict_steps(const Counts& counts, const Rates& rates) const;

  const std::shared_ptr<const Plan> shared_plan_;
  const Plan& plan_;
  std::vector<Value> external_;     // arguments, variables and constants
  std::set<Value> joint_examples_;  // arguments whose rows joint nodes read
  StepId first_store_;              // the first step that writes into a variable's memory, or none
  IndexedVector<StepId, LoopLayout> layouts_;  // of loops
  std::map<NodeId, Bodies> bodies_;            // of control nodes
  struct Contexts {
    std::vector<std::unique_ptr<ExecutionContext>> idle;  // the longest idle first
    std::size_t made = 0;                                 // idle, or of a run
  };
  Synchronized<Contexts> contexts_;
};

// Runs one op at once, as eager code does. counts: examples per symbol of the types.
std::vector<Array> run_op(const Node& node, const std::vector<ValueType>& in_types,
                          const std::vector<ValueType>& out_types, const std::vector<Array>& in,
                          const ReplicaContext& replica_context);

}  // namespace samegrad
