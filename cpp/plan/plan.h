// A compiled graph: steps as data. runtime/ executes it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/assert.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "passes/passes.h"
#include "plan/element_writes.h"
#include "plan/steps.h"

namespace samegrad {

// The storage class of a value while a plan runs.
enum class Storage : std::uint8_t {
  kUnused,
  kExternal,  // an argument, variable or constant
  kTile,      // in the task's scratch: the rows of one tile of examples
  kReplica,   // one copy per replica, all rows
  kShared     // one copy
};

// Sparse gradients (zeros but for the rows that examples name), with nodes that work row by row. No
// array of the variable's size holds one. A pass sums some rows at a time and runs its nodes on
// them; rows without a name are +0. If rows of +0 change neither a variable nor a reduction, a pass
// visits named rows only. A step of its own finds the named rows first: it may fail, an update
// cannot.
struct SparsePass {
  std::vector<std::int32_t> sums;  // of SparseUpdate::sums: what it reads
  std::vector<NodeId> nodes;       // in order
};
struct SparseUpdate {
  std::vector<ExampleSum> sums;
  SparsePass update;
  struct UpdatedVariable {
    Value value;
    SlotId variable;  // that gets it, and whose old value it may be in rows without gradient
  };
  std::vector<UpdatedVariable> results;  // what the update is there for
  // Numbers that rows are reduced to, as for a norm; often the update reads them.
  struct Reduction {
    NodeId node;
    SparsePass pass;  // makes its operand
  };
  std::vector<Reduction> reductions;
  bool leaves_rows_alone = false;  // the update, as far as can be told before a run

  // The reduction of a step that has the node.
  const Reduction& reduction_of(NodeId node) const {
    return *std::ranges::find(reductions, node, &Reduction::node);
  }
};

// The steps between which a value needs memory of the run's arena.
struct LiveRange {
  StepId first, last;
  Value home;  // whose memory it is; kNoValue: it is elsewhere, or is used by nobody
};

// The input/output aliasing of a write: how its value reaches the variable.
enum class Aliasing : std::uint8_t {
  kNothing,  // the variable gets the value that it has
  kInPlace,  // the producer stores into the variable's memory
  kCopy,     // copied into it when all steps are over
  kReplace   // copied into a new array, as the old value is still read
};

struct PlanOptions {
  PassOptions passes;
  bool inner_loops = true;       // big intermediate results one example at a time
  bool fuse_updates = true;      // big weight gradients and the updates by them block by block
  bool sparse_rows = true;       // gradients of gathers as rows, never as a whole
  bool write_in_place = true;    // updates store into the variables' memory
  bool join_small_nodes = true;  // small operations side by side
  bool operator==(const PlanOptions&) const = default;
};

class Plan;

// A plan while it is made: each function of compile() completes one of the tables (PlanStage).
struct PlanDraft {
  Graph graph;
  IndexedVector<StepId, PlanStep> steps;
  IndexedVector<SparseUpdateId, SparseUpdate> sparse_updates;
  PerValue<Storage> storage;
  PerValue<Value> root;                  // whose bytes it shows (its own mostly)
  PerValue<bool> has_rows;               // by root: its bytes are rows of examples to somebody
  PerNode<bool> joint;                   // goes through the rows of all replicas as one list
  PerValue<bool> joint_sum;              // a sum over the rows of all replicas of a process
  PerNode<std::int32_t> prepacked_slot;  // of its prepared operand, or -1
  PerValue<bool> inner_value;            // lives for one example of an inner loop
  PerValue<LiveRange> live_ranges;
  std::int32_t prepacked_slots = 0;
  std::vector<Aliasing> stores;  // per write
  // Where replicas are spread over processes, the sums of a step are on their way while later ones
  // run: up to this one, which has to wait for them, or the end. Of other steps the end.
  IndexedVector<StepId, StepId> collective_done;
  // The weights that products in loops stream in one pass: all, and those left after cutting some
  // out.
  std::int64_t loop_weights = 0, kept_weights = 0;
  // The plans of a control node's graphs, in the order of its regions.
  std::map<NodeId, std::vector<std::shared_ptr<const Plan>>> bodies;
  // The element writes that a loop's iterations do in place.
  std::map<NodeId, std::vector<ElementWrite>> element_writes;
  bool has_random = false;
};

// A plan that is done: nothing changes its tables, so any number of runs may share it.
class Plan : public PlanDraft {
 public:
  explicit Plan(PlanDraft draft) : PlanDraft(std::move(draft)) {}
};

// The steps of one kind, in order.
template <class Kind>
std::vector<const Kind*> steps_of(const PlanDraft& plan) {
  std::vector<const Kind*> found;
  for (const PlanStep& step : plan.steps) {
    if (const Kind* kind = step.get_if<Kind>()) found.push_back(kind);
  }
  return found;
}

// Runs the passes, and plans steps, storage and memory.
Plan compile(Graph graph, const PlanOptions& options = {});

}  // namespace samegrad
