// Inputs of one execution of a plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/per_replica.h"
#include "base/print_buffer.h"
#include "ir/graph.h"
#include "ir/located_error.h"
#include "runtime/communicator.h"
#include "tensor/array.h"
#include "tensor/buffer_pool.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// A variable as programs see it; train/ derives Variable from it.
class StateCell {
 public:
  virtual ~StateCell() = default;
  // One array, or one per replica. A step replaces an array that has other owners instead of
  // writing into it.
  virtual PerReplica<Array>& components() = 0;
  // Changes with every write into the components, by a step or an assignment of user code.
  std::uint64_t version = 0;
  // Among those that the processes have compared, from 1; 0: not yet.
  std::int64_t compared = 0;
  // The value's position in memory that all ranks map; null: not shared. All ranks agree on this.
  std::unique_ptr<SharedLocation> common;
};

// Operands that one iteration of a loop has packed for all iterations.
struct IterationMemory {
  PooledBuffer memory;
  std::vector<char> made;  // per slot and replica: whether it is there
};

class Hashes;

// The time of a step, and the work that its threads shared.
struct StepUsage {
  double seconds = 0;
  SharedWork shared = {};
};

// The parameters of one run of a plan.
struct ExecuteParams {
  std::span<const PerReplica<Array>> arguments;
  std::span<const std::shared_ptr<StateCell>> variables = {};  // per slot of the graph
  Counts counts;                                               // of this process's replicas
  // The processes that the program's replicas are spread over; null: there is one.
  Communicator* communicator = nullptr;
  // The counts of all replicas in a job of several processes. If empty, run() gathers them from the
  // other processes.
  Counts world_counts = {};
  bool in_world = false;  // a part of a step that goes on in several processes
  // Counts of the halo: a last replica, none of the program's, whose examples are those of the
  // following processes (halo.h). Empty without one. `extended` has the arguments with its rows.
  std::vector<std::int64_t> halo = {};
  std::shared_ptr<std::vector<PerReplica<Array>>> extended = {};
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  bool check_finite = false;  // look at every result, name the op that made the first NaN or inf
  const Locations* locations = nullptr;
  PrintBuffer* messages = nullptr;
  // The replicas that take a branch or iteration; empty: all. Values that differ between replicas
  // are not computed for the others, where they might raise an error.
  std::vector<bool> active = {};
  // Nothing is written: variables keep their values, and the memory that they are in.
  bool dry = false;
  std::vector<StepUsage>* usages = nullptr;  // where each step adds what it took; null: no clock
  // The caller ensures that no other thread uses the variables.
  bool alone = false;
  IterationMemory* iterations = nullptr;  // of an iteration
  Hashes* hashes = nullptr;               // of some values of the run, if they are asked for

  const Counts& counts_of_world() const { return world_counts.empty() ? counts : world_counts; }
  // Without counts of the world, as of a plan that is only looked at, there is this process alone.
  bool has_world() const { return communicator && !world_counts.empty(); }
  int first_replica() const { return has_world() ? communicator->own().begin : 0; }
  // Sets the counts of the world, and from them this process's counts.
  void set_counts(Counts of_world);
  bool is_halo(int replica) const {
    return !halo.empty() && std::size_t(replica) + 1 == counts.size();
  }
  bool runs(int replica) const { return active.empty() || active[std::size_t(replica)]; }
  bool runs_all() const { return std::ranges::find(active, false) == active.end(); }
};

// ValueError where program, counts and the world do not belong together.
void check_world(const Graph& graph, const ExecuteParams& call);
// The counts of all processes, which all of them ask for at the same time.
Counts gather_counts(const Graph& graph, const ExecuteParams& call);

}  // namespace samegrad
