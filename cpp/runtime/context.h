// One running instance of a plan: its arena, the addresses of all values, and the views of nodes.
#pragma once

#include <memory>
#include <vector>

#include "base/guarded.h"
#include "plan/memory.h"
#include "runtime/layout.h"
#include "tensor/buffer_pool.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// A subtree of a replica's examples that one task works through.
struct Chunk {
  int replica = 0;
  std::int64_t begin = 0, end = 0;
  std::vector<std::byte*> trees;  // where its tree results go, per Loop::trees
  // Where the states of unfinished subtrees lie in the task's scratch, per Loop::trees.
  std::vector<std::int64_t> partials;
  std::int64_t partial_bytes = 0;
};

// The chunks of a loop, those of a replica next to each other in order of examples.
struct LoopBinding {
  std::vector<Chunk> chunks;
  std::vector<std::int32_t> first_chunk;  // per replica, and the end
  std::int64_t chunk_examples = 0;        // subtrees up to this size are chunks
  bool parallel = false;
};

// A node that runs on whole replicas: once, or once per replica if its results differ.
struct NodeBinding {
  std::vector<std::vector<View>> views;  // per copy: operands, then results
  std::vector<std::int64_t> examples;    // per copy
  std::vector<ValueType> types;          // of operands and results
  int symbol = -1;                       // of the examples
  std::int64_t most_bytes = 0;           // of the largest operand or result
};

// Reductions with the update by them: all that can be known before a run, so that a run allocates
// nothing but scratch.
struct UpdateBinding {
  struct Sum {
    TreeReduction reduction;
    Array divisor;                      // of a mean
    std::vector<const void*> operands;  // of each replica, as the run opened them
  };
  std::vector<Sum> sums;
  // Scratch that opening the operands takes at most, and that a task takes.
  std::size_t open_bytes = 0, task_bytes = 0;
};

// What one task works with, kept from step to step.
struct Task {
  Scratch scratch;
  std::vector<std::vector<View>> loop_views;  // per loop: those of its layout
  std::vector<TreeAccumulator> trees;         // of the chunk it is at
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
  Context(const Plan& plan, const std::vector<LoopLayout>& layouts);

  // Lays out the arena for these counts of examples (per replica, per symbol).
  void bind(const std::vector<std::vector<std::int64_t>>& counts, int threads);
  bool is_bound_to(const std::vector<std::vector<std::int64_t>>& counts, int threads) const {
    return counts == counts_ && threads == threads_;
  }

  int replicas() const { return replicas_; }
  // ValueError if the replica's counts give a value a size below 0: one that runs must not.
  void check_sizes(int replica) const;
  // Of the loops of this run, for their derivatives.
  std::vector<std::unique_ptr<History>> histories;
  std::byte*& base(int replica, Value value) {
    return bases_[std::size_t(replica) * values_ + std::size_t(value)];
  }
  // Of all values.
  std::byte* const* bases(int replica) const {
    return bases_.data() + std::size_t(replica) * values_;
  }
  StepFacts& facts(int replica) { return facts_[std::size_t(replica)]; }
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
  const LoopBinding& loop(std::int32_t index) const { return loops_[std::size_t(index)]; }
  const NodeBinding& node(std::int32_t index) const { return nodes_[std::size_t(index)]; }
  UpdateBinding& update(std::int32_t index) { return updates_[std::size_t(index)]; }
  std::byte* prepared(std::int32_t slot, int replica) const {
    return prepared_[std::size_t(slot) * std::size_t(replicas_) + std::size_t(replica)];
  }
  // What it is made of: operands of one example, once or once per replica.
  const std::vector<std::vector<View>>& sources(std::int32_t slot) const {
    return sources_[std::size_t(slot)];
  }

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
  void set_facts();
  void find_impossible();
  void place_values();
  void place_prepared();
  void place_prepared(const Prepared& prepared, std::int32_t step);
  void place_loops();
  void make_chunks(std::size_t loop);
  void place_trees(std::size_t loop, std::int32_t step);
  void bind_nodes();
  void bind_node(std::int32_t index);
  Task make_task() const;
  void bind_updates();
  // Memory of the arena from the first to the last of some steps; its number.
  std::int64_t reserve(std::int64_t bytes, std::int32_t first, std::int32_t last);

  const Plan& plan_;
  const std::vector<LoopLayout>& layouts_;
  int replicas_;
  int threads_ = 0;
  std::size_t values_;
  std::vector<std::vector<std::int64_t>> counts_;
  Leased arena_;
  const std::byte* placed_ = nullptr;  // the arena that pending_ was set for
  std::vector<Interval> reserved_;
  Packing packing_;  // of what is reserved
  std::vector<std::byte*> bases_;
  std::vector<std::byte*> prepared_;
  std::vector<std::vector<std::vector<View>>> sources_;  // per slot and copy
  std::vector<StepFacts> facts_;
  std::vector<bool> impossible_;  // per replica: some size is below 0
  std::vector<LoopBinding> loops_;
  std::vector<NodeBinding> nodes_;
  std::vector<UpdateBinding> updates_;
  // Addresses to set when the arena is there: (where, what is reserved).
  std::vector<std::pair<std::byte**, std::int64_t>> pending_;
  // Addresses to set in every run: (where, base pointer).
  std::vector<std::pair<void**, std::byte* const*>> node_places_;
  std::vector<std::pair<std::byte**, std::byte* const*>> tree_places_;
  Task main_task_;
  struct Tasks {
    std::vector<std::unique_ptr<Task>> idle;
    std::size_t made = 0;
  };
  Guarded<Tasks> tasks_;
};

// The count symbol a node works on, or -1.
int symbol_of_node(const Graph& graph, const Node& node);

}  // namespace samegrad
