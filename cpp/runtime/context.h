// One running instance of a plan: its arena, the addresses of all values, and the views of nodes.
#pragma once

#include <memory>
#include <vector>

#include "base/guarded.h"
#include "plan/memory.h"
#include "plan/row_program.h"
#include "runtime/call.h"
#include "runtime/halo.h"
#include "runtime/layout.h"
#include "runtime/tree.h"
#include "runtime/world_sums.h"
#include "tensor/buffer_pool.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// A subtree of the examples of a list that one task works through. The lists of a loop are its
// replicas'; of a joint one they are the subtrees that this process makes of all examples.
struct Chunk {
  int list = 0;  // -1: examples that are in none, another process's leaf having them
  std::int64_t begin = 0, end = 0;
  std::vector<std::byte*> trees;  // where its tree results go, per Loop::trees
  // Where the states of unfinished subtrees are in the task's scratch, per Loop::trees.
  std::vector<std::int64_t> partials;
  std::int64_t partial_bytes = 0;
};

// A block of a tree result of a list, which is joined from all of its chunks.
struct Join {
  int list;
  std::size_t tree;  // of Loop::trees
  Block block;
};

// The chunks of a loop, those of a list next to each other in order of examples.
struct LoopBinding {
  std::vector<Chunk> chunks;
  std::vector<std::int32_t> first_chunk;  // per list, and the end
  std::vector<Join> joins;
  bool parallel_joins = false;
  std::int64_t chunk_examples = 0;  // subtrees up to this size are chunks
  bool parallel = false;
  bool joint = false;  // goes through the examples of all replicas as one list
};

// A node that runs on whole replicas: once, or once per replica if its results differ. The copies
// of a joint reduction are parts of one list of examples.
struct NodeBinding {
  std::vector<std::vector<View>> views;  // per copy: operands, then results
  std::vector<std::int64_t> examples;    // per copy
  std::vector<ValueType> types;          // of operands and results
  int symbol = -1;                       // of the examples
  std::int64_t most_bytes = 0;           // of the largest operand or result
  bool joint = false;
  bool makes_rows = false;  // of the global batch: those of others too
};

// Reductions with the update by them: all that can be known before a run, so that a run allocates
// nothing but scratch.
struct UpdateBinding {
  struct Sum {
    TreeReduction reduction;
    Array divisor;  // of a mean
    // Opened by the run: parts of one list, or of replicas that are summed one by one.
    std::vector<OpenExamples> parts;
    bool is_list = false;
    int symbol = -1;  // of the list's examples
  };
  std::vector<Sum> sums;
  // Scratch that opening the operands takes at most, and that a task takes.
  std::size_t open_bytes = 0, task_bytes = 0;
  // Of this run: what is updated is in memory that all ranks see (common_state.h).
  bool in_common = false;
};

// A pass over rows: where things are in memory.
struct RowPassBinding {
  // A value in a block of rows that are next to each other.
  struct Slot {
    Value value;
    std::int64_t row_bytes;
    std::int64_t offset;  // in the task's scratch
  };
  RowPassBinding(const Graph& graph, const RowUpdate& update, const RowPass& of)
      : pass(of), program(graph, update, of), registers(std::size_t(program.known.registers())) {}

  const RowPass& pass;
  RowProgram program;
  std::vector<KnownValue> registers;
  std::vector<Slot> slots;  // of the sums, then of operands with all rows, then of results
  std::size_t block_bytes = 0, task_bytes = 0;  // of the slots; of all that a task takes
};

// Updates of rows, and what a run found out.
struct RowBinding {
  RowBinding(const Graph& graph, const RowUpdate& of) : update(graph, of, of.update) {
    for (const RowUpdate::Reduction& reduction : of.reductions) {
      reductions.emplace_back(graph, of, reduction.pass);
    }
  }

  RowPassBinding update;
  std::vector<RowPassBinding> reductions;
  std::int64_t rows = 0, width = 0;        // of the variable; elements of a row
  std::int64_t block_rows = 1;             // that go through a pass together
  std::vector<RowPassBinding::Slot> left;  // results of the update, and where they are
  std::vector<Value> old;                  // of these: what they are where there is no gradient
  std::vector<Array> divisors;             // per sum, of a mean
  // Places that name rows, numbered through all sums and replicas, and where those of each begin.
  std::vector<std::int64_t> first;
  std::int64_t places = 0;
  // Rows that are named, in order, where the places of each begin among all, and the places.
  struct Named {
    std::byte *row = nullptr, *begin = nullptr, *place = nullptr;
    std::int64_t count = 0;
    // Where several passes read them, the sums of these rows, one sum after the other.
    std::byte* summed = nullptr;
    std::vector<std::int64_t> summed_at;  // per sum, in bytes; none: passes add up for themselves
  };
  std::byte* places_by_row = nullptr;  // in the arena, while they are sorted
  Named own;                           // by this process, in the arena
  std::int64_t summed_bytes = 0;
  // What passes go through: own ones, or those of all processes, which have memory of their own.
  Named named;
  Leased of_world = {};

  template <class T>
  static T* as(std::byte* memory) {
    return reinterpret_cast<T*>(memory);
  }
};

// What one task works with, kept from step to step.
struct Task {
  Scratch scratch;
  IndexedVector<LoopId, std::vector<View>> loop_views;  // those of its layout
  std::vector<TreeAccumulator> trees;                   // of the chunk it is at
};

// What the variables of a loop were before each of its rounds.
struct History {
  struct Round {
    std::vector<std::vector<Array>> variables;
    std::vector<bool> active;  // the replicas that went through it
  };
  std::vector<Round> rounds;
};

class Context {
 public:
  Context(const Plan& plan, const IndexedVector<LoopId, LoopLayout>& layouts);

  // Lays out the arena for the call's counts of examples.
  void bind(const Call& call, int threads);
  bool is_bound_to(const Call& call, int threads) const {
    return call.counts == counts_ && threads == threads_ &&
           call.first_replica() == first_replica_ && call.world_counts == world_counts_;
  }

  // Of this process; they are numbered from 0 here, and in the world from the first one's number.
  // The last one may be that of examples of other processes (Call::halo).
  int replicas() const { return replicas_; }
  int own_replicas() const { return replicas_ - int(has_halo_); }
  int replicas_of_world() const { return int(counts_of_world().size()); }
  // ValueError if the replica's counts give a value a size below 0: one that runs must not.
  void check_sizes(int replica) const;
  // Of the loops of this run, for their derivatives.
  std::vector<std::unique_ptr<History>> histories;
  std::byte*& base(int replica, Value value) {
    return bases_[std::size_t(replica) * values_ + value.index()];
  }
  // Of all values.
  std::byte* const* bases(int replica) const {
    return bases_.data() + std::size_t(replica) * values_;
  }
  ReplicaContext& of_replica(int replica) { return replica_context_[std::size_t(replica)]; }
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
  // Those of a subtree of the world's tree, counted from this process's first one.
  TreeRange terms_of(Value partial, std::size_t subtree) const {
    const auto t = std::int64_t(subtree);
    return is_joint_sum(partial) ? TreeRange{t, t + 1} : tree_of(partial).own()[subtree];
  }
  // The subtrees of the tree over all examples that this process makes, counted from its first one.
  std::span<const TreeRange> subtrees(int symbol) const { return subtrees_[std::size_t(symbol)]; }
  // The tree that a sum is a part of, over examples or replicas, in a run of several processes.
  const WorldTree& tree_of(Value sum) const;
  // Makes the rows of an argument, per replica, one list for a run if they are not.
  void make_list(Value value, const std::vector<Array>& arrays);
  // Sets the seed and what else a run gives to all replicas.
  void set_call(const Call& call);
  // Of the arena that it takes for a run.
  std::int64_t arena_bytes() const { return packing_.bytes; }
  // What that would be if nothing shared memory with anything.
  std::int64_t unshared_bytes() const;
  // Between runs a context has neither arena nor scratch: they are the pool's.
  void take_memory();
  void give_memory() noexcept;
  // Afterwards what the steps that write in place take cannot be missing: small pieces of scratch,
  // and what updates block by block take.
  void reserve_scratch();
  // Takes over the base pointers of this run, once all are set.
  void refresh();
  // Where operands are that stay prepared from round to round.
  void share(RoundMemory* rounds);
  const LoopBinding& loop(LoopId index) const { return loops_[index]; }
  const NodeBinding& node(NodeId index) const { return nodes_[index]; }
  UpdateBinding& update(UpdateId index) { return updates_[index]; }
  RowBinding& row_update(RowUpdateId index) { return row_updates_[index]; }
  std::byte* prepared(std::int32_t slot, int replica) const {
    return prepared_[std::size_t(slot) * std::size_t(replicas_) + std::size_t(replica)];
  }
  // What it is made of: operands of one example, once or once per replica.
  const std::vector<std::vector<View>>& sources(std::int32_t slot) const {
    return sources_[std::size_t(slot)];
  }

  // Of a run in several processes: what travels between them. Open from open_world_sums() on.
  void open_world_sums(Communicator& communicator);
  WorldSums& world_sums() { return *world_sums_; }
  void close_world_sums() noexcept { world_sums_ = nullptr; }

  // The task of the thread that runs the plan.
  Task& main_task() { return main_task_; }
  // The task of a piece of a parallel loop; given back by the destructor.
  class Lease {
   public:
    explicit Lease(Context& context);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Task& operator*() const { return *task_; }

   private:
    Context& context_;
    std::unique_ptr<Task> task_;
  };

 private:
  const Counts& counts_of_world() const { return world_counts_.empty() ? counts_ : world_counts_; }
  void set_facts();
  void find_trees(const Call& call);
  void find_impossible();
  void place_values();
  void place_prepared();
  void place_prepared(const Prepared& prepared, StepId step);
  void place_loops();
  bool makes_rows(const Loop& loop) const;
  void make_chunks(LoopId loop);
  void make_joins(LoopId loop);
  void place_trees(LoopId loop, StepId step);
  void bind_nodes();
  void bind_node(NodeId index);
  Shape shape_of_all(const ValueType& type) const;
  Task make_task() const;
  void bind_updates();
  void bind_row_updates();
  // Memory of the arena from the first to the last of some steps; its number.
  std::int64_t reserve(std::int64_t bytes, StepId first, StepId last);

  const Plan& plan_;
  const IndexedVector<LoopId, LoopLayout>& layouts_;
  int replicas_ = 0;
  int first_replica_ = 0;
  int threads_ = 0;
  std::size_t values_;
  Counts counts_, world_counts_;  // as the call has them
  Leased arena_;
  std::vector<Leased> lists_;          // rows of arguments, one replica's after the other's
  const std::byte* placed_ = nullptr;  // the arena that pending_ was set for
  std::vector<Interval> reserved_;
  Packing packing_;  // of what is reserved
  std::vector<std::byte*> bases_;
  std::vector<std::byte*> prepared_;
  std::vector<std::vector<std::vector<View>>> sources_;  // per slot and copy
  // Of prepared_, those that rounds share: which, and where in their memory.
  std::vector<std::pair<std::size_t, std::int64_t>> kept_;
  std::int64_t kept_bytes_ = 0;
  std::vector<ReplicaContext> replica_context_;
  ReplicaContext joint_context_;
  bool has_halo_ = false;
  std::vector<std::vector<TreeRange>> subtrees_;  // per symbol
  ExampleTrees trees_;                            // of a run in several processes
  std::optional<WorldTree> replica_tree_;         // the same
  std::vector<bool> impossible_;                  // per replica: some size is below 0
  IndexedVector<LoopId, LoopBinding> loops_;
  PerNode<NodeBinding> nodes_;
  IndexedVector<UpdateId, UpdateBinding> updates_;
  IndexedVector<RowUpdateId, RowBinding> row_updates_;
  // Addresses to set when the arena is there.
  struct Pending {
    std::byte** where;
    std::int64_t reserved, offset;  // in what is reserved
  };
  std::vector<Pending> pending_;
  // The memory of all vectors whose elements' addresses are kept: they must not grow after bind().
  std::vector<const void*> kept_addresses() const;
  std::vector<const void*> bound_addresses_;  // by bind(), in builds with assertions
  // Addresses to set in every run: (where, base pointer), and some bytes on.
  std::vector<std::pair<void**, std::byte* const*>> node_places_;
  struct TreePlace {
    std::byte** where;
    std::byte* const* base;
    std::int64_t offset;
  };
  std::vector<TreePlace> tree_places_;
  std::unique_ptr<WorldSums> world_sums_;
  Task main_task_;
  struct Tasks {
    std::vector<std::unique_ptr<Task>> idle;
    std::size_t made = 0;
  };
  Guarded<Tasks> tasks_;
};

}  // namespace samegrad
