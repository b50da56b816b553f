// Runs plans: replicas, tiles, all-reduce, updates.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/guarded.h"
#include "plan/explain.h"
#include "plan/plan.h"
#include "runtime/call.h"
#include "runtime/check_finite.h"
#include "runtime/context.h"
#include "runtime/step_run.h"

namespace samegrad {

class Executable {
 public:
  explicit Executable(std::shared_ptr<const Plan> plan);
  explicit Executable(Plan plan) : Executable(std::make_shared<const Plan>(std::move(plan))) {}

  const Plan& plan() const { return plan_; }
  // One array per output, or one per replica where replicas differ. May run in several threads at
  // once; steps that write variables take turns.
  std::vector<PerReplica<Array>> run(const Call& call);
  // Memory between the steps of such a run.
  struct ArenaBytes {
    std::int64_t planned = 0, unshared = 0;  // unshared: if each value had its own
  };
  ArenaBytes arena_bytes(const Call& call);
  // The statistics of a run with these counts; with `runs` > 0, the times of that many dry runs.
  RunStatistics statistics_of(const Call& call, int runs);

 private:
  // The context of one run, bound to its counts: finish() gives it back, and a run that fails
  // leaves it to be destroyed.
  class Lease {
   public:
    Lease(Executable& executable, const Call& call);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Context& operator*() const { return *context_; }
    void finish();

   private:
    Lease(Executable& executable, const Call& call, int threads);

    Executable& executable_;
    std::unique_ptr<Context> context_;
  };

  std::vector<PerReplica<Array>> run_in_world(const Call& call);
  std::vector<PerReplica<Array>> run_here(const Call& call);
  std::vector<PerReplica<Array>> run(const Call& call, Context& context);
  void set_arguments(const Call& call, Context& context);
  std::vector<PerReplica<Array>> make_outputs(const Call& call, Context& context);
  void copy_outputs(std::vector<PerReplica<Array>>& outputs, Context& context);
  std::vector<Array> make_state(const Call& call, Context& context);
  void commit_state(const Call& call, Context& context, std::vector<Array>& fresh);
  void run_step(StepId s, const Call& call, Context& context);
  void run_steps(const Call& call, Context& context);
  std::vector<double> predict_steps(const std::vector<std::vector<std::int64_t>>& counts,
                                    const Rates& rates) const;

  const std::shared_ptr<const Plan> shared_plan_;
  const Plan& plan_;
  std::vector<Value> external_;  // arguments, variables and constants
  std::set<Value> joint_rows_;   // arguments whose rows joint nodes read
  StepId first_store_;           // the first step that writes into a variable's memory, or none
  IndexedVector<StepId, LoopLayout> layouts_;  // of loops
  std::map<NodeId, Bodies> bodies_;            // of control nodes
  struct Contexts {
    std::vector<std::unique_ptr<Context>> idle;  // the longest idle first
    std::size_t made = 0;                        // idle, or of a run
  };
  Guarded<Contexts> contexts_;
};

// Runs one op at once, as eager code does. counts: examples per symbol of the types.
std::vector<Array> run_op(const Node& node, const std::vector<ValueType>& in_types,
                          const std::vector<ValueType>& out_types, const std::vector<Array>& in,
                          const ReplicaContext& replica_context);

}  // namespace samegrad
