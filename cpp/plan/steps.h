// The kinds of steps of a plan. Each kind is a type that states what it reads and writes, whether
// it can fail, whether it sends messages, its title and how it stores into variables. PlanStep asks
// all kinds alike, so a kind that lacks one of these functions does not compile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

struct PlanDraft;
struct SparseUpdate;
class PlanStep;
using SparseUpdateId = Id<SparseUpdate>;
using StepId = Id<PlanStep>;

struct Prepacked {
  NodeId node;  // whose prepare() is called
  Value operand;
  std::int32_t slot;  // index of the prepared memory
  bool kept = false;  // from iteration to iteration: the operand is the same in all of them
};

// The buffers that a step reads and writes, named by the values whose bytes they hold
// (PlanDraft::root).
struct BufferUses {
  std::vector<Value> reads, writes;
};

// The rule by which a step may store results into the memory of variables.
enum class StoreRule : std::uint8_t {
  kNever,
  kByElement,  // each element as soon as the old value of that element was read
  kWhenDone    // after the step has read all old values that it reads
};

// A sum over the examples of all replicas.
struct ExampleSum {
  NodeId tree;        // the reduction over the examples; none: it is given
  NodeId all_reduce;  // none: there is one replica, or all have the same examples
  Value result;
};

// The roots that a step reads when the sums over replicas have arrived from all processes. None: it
// has no such sums.
using SumReads = std::optional<std::vector<Value>>;

// The part that all kinds have.
struct StepBase {
  std::vector<NodeId> nodes;            // in order
  std::vector<Prepacked> prepack = {};  // done before the step, if not kept from another iteration

 protected:
  // Operands and results of the nodes.
  BufferUses uses_of_nodes(const PlanDraft& plan) const;
  // True if some node may raise, or takes memory that may be missing.
  bool nodes_can_fail(const PlanDraft& plan) const;
};

// One node, replica by replica.
struct NodeStep : StepBase {
  static constexpr const char* kName = "once";
  static constexpr StoreRule kStores = StoreRule::kByElement;
  static constexpr bool kBindsNodes = true;
  BufferUses uses(const PlanDraft& plan) const { return uses_of_nodes(plan); }
  bool can_fail(const PlanDraft& plan) const { return nodes_can_fail(plan); }
  bool sends_messages(const PlanDraft&) const { return false; }
  SumReads reads_of_sums(const PlanDraft&) const { return std::nullopt; }
  std::string title(const PlanDraft&) const { return "once"; }
};

// Small nodes that do not wait for each other.
struct SideBySideStep : StepBase {
  static constexpr const char* kName = "side_by_side";
  static constexpr StoreRule kStores = StoreRule::kByElement;
  static constexpr bool kBindsNodes = true;
  std::vector<std::int32_t> pieces = {};  // ends of the runs of nodes that a thread takes at a time
  BufferUses uses(const PlanDraft& plan) const { return uses_of_nodes(plan); }
  bool can_fail(const PlanDraft& plan) const { return nodes_can_fail(plan); }
  bool sends_messages(const PlanDraft&) const { return false; }
  SumReads reads_of_sums(const PlanDraft&) const { return std::nullopt; }
  std::string title(const PlanDraft&) const { return "once, side by side"; }
};

// A product of the rows of all replicas with one matrix.
struct GroupedGemmStep : StepBase {
  static constexpr const char* kName = "rows";
  static constexpr StoreRule kStores = StoreRule::kNever;
  static constexpr bool kBindsNodes = true;
  BufferUses uses(const PlanDraft& plan) const { return uses_of_nodes(plan); }
  bool can_fail(const PlanDraft&) const { return true; }
  bool sends_messages(const PlanDraft&) const { return false; }
  SumReads reads_of_sums(const PlanDraft&) const { return std::nullopt; }
  std::string title(const PlanDraft&) const { return "rows of all replicas"; }
};

// A loop over the examples of each replica: every node is run for one tile of examples after the
// other, so values between the nodes stay in cache.
struct LoopStep : StepBase {
  static constexpr const char* kName = "loop";
  static constexpr StoreRule kStores = StoreRule::kNever;
  static constexpr bool kBindsNodes = false;
  int symbol = 0;
  bool varying = false;  // each replica has its own examples
  bool joint = false;    // the replicas' examples are one list
  // Nodes [begin, end) (positions in `nodes`) run one example at a time.
  struct Inner {
    std::int32_t begin, end;
  };
  std::vector<Inner> inner = {};
  std::vector<Value> trees = {};  // results of the tree reductions in the loop
  // A tile is a subtree of at most so many examples; `example_bytes` is the size of the values
  // between the nodes, per example.
  std::int64_t tile_examples = 4, example_bytes = 0;
  std::int64_t weight_bytes = 0;  // of the products: each tile passes through them
  BufferUses uses(const PlanDraft& plan) const { return uses_of_nodes(plan); }
  bool can_fail(const PlanDraft&) const { return true; }
  bool sends_messages(const PlanDraft&) const { return false; }
  SumReads reads_of_sums(const PlanDraft&) const { return std::nullopt; }
  std::string title(const PlanDraft& plan) const;
};

// The collectives that run together.
struct AllReduceStep : StepBase {
  static constexpr const char* kName = "all_reduce";
  static constexpr StoreRule kStores = StoreRule::kNever;
  static constexpr bool kBindsNodes = false;
  BufferUses uses(const PlanDraft& plan) const { return uses_of_nodes(plan); }
  bool can_fail(const PlanDraft&) const { return false; }
  bool sends_messages(const PlanDraft& plan) const;
  SumReads reads_of_sums(const PlanDraft& plan) const;
  std::string title(const PlanDraft&) const { return "all-reduce"; }
};

// Gradients of large weights, block by block: the tree over a replica's examples, the tree over the
// replicas, and the update that reads the sum while the block is in cache. No gradient of one
// replica is ever in memory, and none at all where there is an update. Results of loops and
// arguments go through the tree over the replicas and the update in one pass.
struct BlockUpdateStep : StepBase {
  static constexpr const char* kName = "block_update";
  static constexpr StoreRule kStores = StoreRule::kByElement;
  static constexpr bool kBindsNodes = true;
  std::vector<ExampleSum> sums = {};  // operands of the update; without one, a sum to store
  NodeId update = {};                 // an elementwise node
  BlockUpdateStep(std::vector<ExampleSum> sums, NodeId update);
  // True if all sums have an all-reduce; else none has.
  bool has_replicas() const { return sums[0].all_reduce.exists(); }
  BufferUses uses(const PlanDraft& plan) const { return uses_of_nodes(plan); }
  bool can_fail(const PlanDraft&) const { return false; }
  bool sends_messages(const PlanDraft&) const { return false; }
  SumReads reads_of_sums(const PlanDraft& plan) const;
  std::string title(const PlanDraft&) const { return "block by block"; }
};

// The part of the steps of a SparseUpdate.
struct SparseStep : StepBase {
  SparseUpdateId update;
  SparseStep(std::vector<NodeId> nodes_of_step, SparseUpdateId of)
      : StepBase{std::move(nodes_of_step)}, update(of) {}
};

// Finds the rows that a SparseUpdate has to touch.
struct SparseRowsStep : SparseStep {
  using SparseStep::SparseStep;
  static constexpr const char* kName = "sparse_rows";
  static constexpr StoreRule kStores = StoreRule::kNever;
  static constexpr bool kBindsNodes = false;
  BufferUses uses(const PlanDraft& plan) const { return uses_of_nodes(plan); }
  bool can_fail(const PlanDraft&) const { return true; }
  bool sends_messages(const PlanDraft&) const { return true; }
  SumReads reads_of_sums(const PlanDraft&) const { return std::nullopt; }
  std::string title(const PlanDraft&) const { return "rows that have a gradient"; }
};

// A number that the rows of a SparseUpdate are reduced to, by the last node.
struct SparseReduceStep : SparseStep {
  using SparseStep::SparseStep;
  static constexpr const char* kName = "sparse_reduce";
  static constexpr StoreRule kStores = StoreRule::kNever;
  static constexpr bool kBindsNodes = true;
  BufferUses uses(const PlanDraft& plan) const;
  bool can_fail(const PlanDraft&) const { return true; }
  bool sends_messages(const PlanDraft&) const { return true; }
  SumReads reads_of_sums(const PlanDraft&) const { return std::nullopt; }
  std::string title(const PlanDraft&) const { return "reduced, row by row"; }
};

// The update of a SparseUpdate.
struct SparseUpdateStep : SparseStep {
  using SparseStep::SparseStep;
  static constexpr const char* kName = "sparse_update";
  static constexpr StoreRule kStores = StoreRule::kWhenDone;
  static constexpr bool kBindsNodes = true;
  BufferUses uses(const PlanDraft& plan) const { return uses_of_nodes(plan); }
  bool can_fail(const PlanDraft&) const { return false; }
  bool sends_messages(const PlanDraft&) const { return true; }
  SumReads reads_of_sums(const PlanDraft&) const { return std::nullopt; }
  std::string title(const PlanDraft& plan) const;
};

// A branch or a loop of the program.
struct ControlStep : StepBase {
  static constexpr const char* kName = "once";
  static constexpr StoreRule kStores = StoreRule::kNever;
  static constexpr bool kBindsNodes = false;
  BufferUses uses(const PlanDraft& plan) const { return uses_of_nodes(plan); }
  bool can_fail(const PlanDraft&) const { return true; }
  bool sends_messages(const PlanDraft&) const { return true; }
  SumReads reads_of_sums(const PlanDraft&) const { return std::nullopt; }
  std::string title(const PlanDraft&) const { return "once"; }
};

// A step of any kind.
class PlanStep {
 public:
  using Kind = std::variant<NodeStep, SideBySideStep, GroupedGemmStep, LoopStep, AllReduceStep,
                            BlockUpdateStep, SparseRowsStep, SparseReduceStep, SparseUpdateStep,
                            ControlStep>;

  template <class T>
  requires std::is_constructible_v<Kind, T&&> PlanStep(T&& kind)
      : kind_(std::forward<T>(kind)) {}  // NOLINT: a step is made of its kind

  const Kind& kind() const { return kind_; }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(kind_);
  }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&kind_);
  }
  template <class T>
  T* get_if() {
    return std::get_if<T>(&kind_);
  }

  const StepBase& base() const;
  StepBase& base();
  const std::vector<NodeId>& nodes() const { return base().nodes; }
  const std::vector<Prepacked>& prepack() const { return base().prepack; }
  // The update that the step is a part of, or none.
  SparseUpdateId sparse_update() const;
  const char* name() const;
  StoreRule stores() const;
  // True if the step calls its nodes with whole operands, which are bound once per run's counts.
  bool binds_nodes() const;
  BufferUses uses(const PlanDraft& plan) const;
  // False if nothing that the step does can fail: a step that raises must leave the variables as
  // they were, so nothing is stored into their memory before it.
  bool can_fail(const PlanDraft& plan) const;
  // True if the step has messages between processes that are not sums of this plan.
  bool sends_messages(const PlanDraft& plan) const;
  // Sums over replicas may arrive from other processes while later steps run.
  SumReads reads_of_sums(const PlanDraft& plan) const;
  std::string title(const PlanDraft& plan) const;

 private:
  Kind kind_;
};

}  // namespace samegrad
