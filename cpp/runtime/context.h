// One running instance of a plan: its arena, the addresses of all values, and the views of nodes.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/layout.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// A subtree of a replica's examples that one task works through.
struct Chunk {
  int replica = 0;
  std::int64_t begin = 0, end = 0;
  std::vector<std::byte*> trees;  // where its tree results go, per Loop::trees
};

// The chunks of a loop, those of a replica next to each other in order of examples.
struct LoopBinding {
  std::vector<Chunk> chunks;
  std::vector<std::int32_t> first_chunk;  // per replica, and the end
  std::int64_t chunk_examples = 0;        // subtrees up to this size are chunks
  bool parallel = false;
};

// Views of a node that runs on whole replicas, per replica (one entry if it runs once).
struct NodeBinding {
  std::vector<std::vector<View>> views;
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
  std::byte*& base(int replica, Value value) {
    return bases_[std::size_t(replica) * values_ + std::size_t(value)];
  }
  StepFacts& facts(int replica) { return facts_[std::size_t(replica)]; }
  const LoopBinding& loop(std::int32_t index) const { return loops_[std::size_t(index)]; }
  std::byte* prepared(std::int32_t slot, int replica) const {
    return prepared_[std::size_t(slot) * std::size_t(replicas_) + std::size_t(replica)];
  }
  // The node's views with today's addresses.
  std::vector<View>& views(std::int32_t node, int replica);
  // Examples of the node's symbol on the replica (0 where it has none).
  std::int64_t examples_of(const Node& node, int replica) const;

  // Scratch of one task; given back by the destructor.
  class Lease {
   public:
    explicit Lease(Context& context);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Scratch& operator*() const { return *scratch_; }

   private:
    Context& context_;
    std::unique_ptr<Scratch> scratch_;
  };

 private:
  void set_facts();
  void place_values();
  void place_prepared();
  void place_loops();
  void make_chunks(std::size_t loop);
  std::int64_t reserve(std::int64_t bytes);

  const Plan& plan_;
  const std::vector<LoopLayout>& layouts_;
  int replicas_;
  int threads_ = 0;
  std::size_t values_;
  std::vector<std::vector<std::int64_t>> counts_;
  std::unique_ptr<Buffer> arena_;
  std::int64_t arena_bytes_ = 0;
  std::vector<std::byte*> bases_;
  std::vector<std::byte*> prepared_;
  std::vector<StepFacts> facts_;
  std::vector<LoopBinding> loops_;
  std::vector<NodeBinding> nodes_;
  // Addresses to set once the arena is there: (where, offset).
  std::vector<std::pair<std::byte**, std::int64_t>> pending_;
  std::mutex scratch_mutex_;
  std::vector<std::unique_ptr<Scratch>> scratches_;
};

// The count symbol a node works on, or -1.
int symbol_of_node(const Graph& graph, const Node& node);

}  // namespace samegrad
