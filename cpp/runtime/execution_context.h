// One running instance of a plan: its arena, the addresses of all values, and the views of nodes.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "base/synchronized.h"
#include "plan/memory.h"
#include "runtime/execute_params.h"
#include "runtime/halo.h"
#include "runtime/layout.h"
#include "runtime/step_binding.h"
#include "runtime/tree.h"
#include "runtime/world_sums.h"
#include "tensor/buffer_pool.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// The memory of one task, cached from step to step.
struct Task {
  Scratch scratch;
  IndexedVector<StepId, std::vector<View>> loop_views;  // per loop, as its layout has them
  std::vector<TreeAccumulator> trees;                   // of the chunk it is at
};

// The variables of a loop before each of its iterations (stacked residuals).
struct StackedResiduals {
  struct Iteration {
    std::vector<PerReplica<Array>> variables;
    std::vector<bool> active;  // the replicas that went through it
  };
  std::vector<Iteration> iterations;
};

class ExecutionContext {
 public:
  ExecutionContext(const Plan& plan, const IndexedVector<StepId, LoopLayout>& layouts);

  const Plan& plan() const { return plan_; }

  // Lays out the arena for the call's counts of examples.
  void bind(const ExecuteParams& call, int threads);
  bool is_bound_to(const ExecuteParams& call, int threads) const {
    return call.counts == counts_ && threads == threads_ &&
           call.first_replica() == first_replica_ && call.world_counts == world_counts_;
  }

  // The number of this process's replicas. They are numbered from 0 here, and in the world from the
  // first one's number. The last one may have the examples of other processes
  // (ExecuteParams::halo).
  int replicas() const { return replicas_; }
  int own_replicas() const { return replicas_ - int(has_halo_); }
  int replicas_of_world() const { return int(counts_of_world().size()); }
  // ValueError if the replica's counts give a value a size below 0: one that runs must not.
  void check_sizes(int replica) const;
  // Histories of the loops of this run, for their derivatives.
  std::vector<std::unique_ptr<StackedResiduals>> histories;
  std::byte*& base(int replica, Value value) {
    return addresses_[address_of(replica, value).index()];
  }
  // Base addresses of all values.
  std::byte* const* bases(int replica) const {
    return addresses_.data() + std::size_t(replica) * values_;
  }
  AddressId address_of(int replica, Value value) const {
    return AddressId(std::size_t(replica) * values_ + value.index());
  }
  std::byte* at(AddressId address) const { return addresses_[address.index()]; }
  std::byte* at(const AddressOffset& place) const { return at(place.address) + place.offset; }
  // Reserves memory of the arena from the first to the last of some steps.
  AddressId reserve(std::int64_t bytes, StepId first, StepId last);
  int threads() const { return threads_; }
  const ReplicaContext& of_replica(int replica) const {
    return replica_context_[std::size_t(replica)];
  }
  // The context of all replicas of this process, whose examples are one list.
  const ReplicaContext& of_joint() const { return joint_context_; }
  // Arrays of the value: one where all replicas share it, and of a joint sum one for each
  // subtree that this process makes.
  int copies(Value value) const;
  bool is_joint_sum(Value value) const { return plan_.joint_sum[value]; }
  // Bytes from one array of a joint sum to the next.
  std::int64_t sum_stride(Value value) const;
  // Arrays of a partial sum that this process has: its replicas', or its subtrees' of all examples.
  std::int64_t terms(Value partial) const {
    return is_joint_sum(partial) ? copies(partial) : own_replicas();
  }
  std::byte* term(Value partial, std::int64_t i) {
    return is_joint_sum(partial) ? base(0, partial) + i * sum_stride(partial)
                                 : base(int(i), partial);
  }
  // The terms of a subtree of the world's tree, counted from this process's first one.
  TreeRange terms_of(Value partial, std::size_t subtree) const {
    const auto t = std::int64_t(subtree);
    return is_joint_sum(partial) ? TreeRange{t, t + 1} : tree_of(partial).own()[subtree];
  }
  // The subtrees of the tree over all examples that this process makes, counted from its first one.
  std::span<const TreeRange> subtrees(int symbol) const { return subtrees_[std::size_t(symbol)]; }
  // The tree that a sum is a part of, over examples or replicas, in a run of several processes.
  const WorldTree& tree_of(Value sum) const;
  // Makes the rows of an argument, per replica, one list for a run if they are not.
  void make_list(Value value, const PerReplica<Array>& arrays);
  // Sets the seed and what else a run gives to all replicas.
  void set_call(const ExecuteParams& call);
  // The bytes of the arena that a run takes.
  std::int64_t arena_bytes() const { return packing_.bytes; }
  // The bytes of the arena if no values shared memory.
  std::int64_t unshared_bytes() const;
  // Between runs a context has neither arena nor scratch: they are the pool's.
  void take_memory();
  void give_memory() noexcept;
  // Afterwards what the steps that write in place take cannot be missing: small pieces of scratch,
  // and what updates block by block take.
  void reserve_scratch();
  // Gives the addresses of this run to the views of nodes, once all are set.
  void refresh();
  // Sets the memory of operands that stay packed from iteration to iteration.
  void share(IterationMemory* iterations);
  // LoopBinding of a loop, UpdateBinding of a blockwise update.
  template <class Binding>
  Binding& binding(StepId step) {
    return std::get<Binding>(bindings_[step]);
  }
  const LoopLayout& layout(StepId loop) const { return layouts_[loop]; }
  const NodeBinding& node(NodeId index) const { return nodes_[index]; }
  SparseUpdateBinding& sparse_update(SparseUpdateId index) { return sparse_updates_[index]; }
  std::byte* prepacked(std::int32_t slot, int replica) const {
    return addresses_[prepacked_index(slot, replica)];
  }
  // Operands that it is prepared from, of one example, once or once per replica.
  const std::vector<std::vector<View>>& sources(std::int32_t slot) const {
    return sources_[std::size_t(slot)].views;
  }

  // The sums between processes in a distributed run, open from open_world_sums() on.
  void open_world_sums(Communicator& communicator);
  WorldSums& world_sums() { return *world_sums_; }
  void close_world_sums() noexcept { world_sums_ = nullptr; }

  // The task of the thread that runs the plan.
  Task& main_task() { return main_task_; }
  // The task of a piece of a parallel loop; given back by the destructor.
  class TaskLease {
   public:
    explicit TaskLease(ExecutionContext& context);
    ~TaskLease();
    TaskLease(const TaskLease&) = delete;
    TaskLease& operator=(const TaskLease&) = delete;
    Task& operator*() const { return *task_; }

   private:
    ExecutionContext& context_;
    std::unique_ptr<Task> task_;
  };

 private:
  const Counts& counts_of_world() const { return world_counts_.empty() ? counts_ : world_counts_; }
  void set_facts();
  void find_trees(const ExecuteParams& call);
  void find_impossible();
  void place_values();
  void place_prepacked();
  void place_prepacked(const Prepacked& prepacked, StepId step);
  void bind_nodes();
  void bind_node(NodeId index);
  Shape shape_of_all(const ValueType& type) const;
  Task make_task() const;
  void bind_steps();
  std::size_t prepacked_index(std::int32_t slot, int replica) const {
    return std::size_t(replicas_) * (values_ + std::size_t(slot)) + std::size_t(replica);
  }

  const Plan& plan_;
  const IndexedVector<StepId, LoopLayout>& layouts_;
  int replicas_ = 0;
  int first_replica_ = 0;
  int threads_ = 0;
  std::size_t values_;
  Counts counts_, world_counts_;  // as the call has them
  PooledBuffer arena_;
  std::vector<PooledBuffer> lists_;    // rows of arguments, one replica's after the other's
  const std::byte* placed_ = nullptr;  // the arena that addresses_ was set for
  std::vector<Interval> reserved_;
  Packing packing_;  // of what is reserved
  // Per replica and value; per prepared slot and replica; of reserved memory.
  std::vector<std::byte*> addresses_;
  struct Sources {
    std::vector<std::vector<View>> views;  // per copy
    std::vector<Value> roots;              // per operand
  };
  std::vector<Sources> sources_;  // per slot
  // Prepared operands that iterations share: indices of addresses, and offsets in the iterations'
  // memory.
  std::vector<std::pair<std::size_t, std::int64_t>> kept_;
  std::int64_t kept_bytes_ = 0;
  std::vector<ReplicaContext> replica_context_;
  ReplicaContext joint_context_;
  bool has_halo_ = false;
  std::vector<std::vector<TreeRange>> subtrees_;  // per symbol
  ExampleTrees trees_;                            // of a run in several processes
  std::optional<WorldTree> replica_tree_;         // of a run in several processes
  std::vector<bool> impossible_;                  // per replica: some size is below 0
  PerNode<NodeBinding> nodes_;
  IndexedVector<StepId, StepBinding> bindings_;
  IndexedVector<SparseUpdateId, SparseUpdateBinding> sparse_updates_;
  std::vector<NodeId> bound_;  // whose views get the addresses of each run
  // Addresses in the arena.
  struct InArena {
    std::size_t address;
    std::size_t reserved;  // index in reserved_
    std::int64_t offset;
  };
  std::vector<InArena> in_arena_;
  std::unique_ptr<WorldSums> world_sums_;
  Task main_task_;
  struct Tasks {
    std::vector<std::unique_ptr<Task>> idle;
    std::size_t made = 0;
  };
  Synchronized<Tasks> tasks_;
};

}  // namespace samegrad
