// A compiled graph: steps as data. runtime/ executes it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/assert.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "passes/passes.h"
#include "plan/row_writes.h"

namespace samegrad {

struct Loop;
struct ReduceUpdate;
struct RowUpdate;
struct PlanStep;
using LoopId = Id<Loop>;
using UpdateId = Id<ReduceUpdate>;
using RowUpdateId = Id<RowUpdate>;
using StepId = Id<PlanStep>;

// Where the bytes of a value live while a plan runs.
enum class Storage : std::uint8_t {
  kUnused,
  kExternal,  // an argument, variable or constant
  kTile,      // in the task's scratch: the rows of one tile of examples
  kReplica,   // one copy per replica, all rows
  kShared     // one copy
};

// A loop over the examples of each replica: every node is run for one tile of examples after the
// other, so what is between the nodes stays in cache.
struct Loop {
  std::vector<NodeId> nodes;
  int symbol = 0;
  bool varying = false;  // each replica has its own examples
  bool joint = false;    // the replicas' examples are one list
  // Nodes [begin, end) (positions in `nodes`) run one example at a time.
  struct Inner {
    std::int32_t begin, end;
  };
  std::vector<Inner> inner;
  std::vector<Value> trees;  // results of the tree reductions in the loop
  // A tile is a subtree of at most so many examples; what one brings to it.
  std::int64_t tile_examples = 4, example_bytes = 0;
  std::int64_t weight_bytes = 0;  // of the products: each tile passes through them
};

struct Prepared {
  NodeId node;  // whose prepare() is called
  Value operand;
  std::int32_t slot;  // index of the prepared memory
  bool kept = false;  // from round to round: the operand is the same in all of them
};

// Gradients of large weights, block by block: the tree over a replica's examples, the tree over the
// replicas, and the update that reads the sum while the block is in cache. No gradient of one
// replica is ever in memory, and none at all where there is an update. What loops or arguments give
// goes through the tree over the replicas and the update in one pass.
struct ReduceUpdate {
  struct Sum {
    NodeId tree;        // the reduction over the examples; none: it is given
    NodeId all_reduce;  // none: there is one replica, or all have the same examples
    Value result;
  };
  std::vector<Sum> sums;  // what the update reads; one, stored as it is, if there is none
  NodeId update;          // an elementwise node

  // Of all sums or of none.
  bool has_replicas() const { return sums[0].all_reduce.exists(); }
};

// Gradients that are zeros but for the rows that the examples name, and all that works on them row
// by row. No array of the variable's size holds one: a pass adds up some rows at a time and runs
// its nodes on them, rows that nobody names being +0. Where these change nothing, an update whose
// variables stay as they are or a reduction, the pass goes through named rows alone; else through
// all. First a step finds out which rows are named, which may fail; an update cannot.
struct RowPass {
  std::vector<std::int32_t> sums;  // of RowUpdate::sums: what it reads
  std::vector<NodeId> nodes;       // in order
};
struct RowUpdate {
  std::vector<ReduceUpdate::Sum> sums;
  RowPass update;
  struct Result {
    Value value;
    SlotId variable;  // that gets it, and whose old value it may be in rows without gradient
  };
  std::vector<Result> results;  // what the update is there for
  // Numbers that rows are reduced to, as for a norm; often the update reads them.
  struct Reduction {
    NodeId node;
    RowPass pass;  // makes its operand
  };
  std::vector<Reduction> reductions;
  bool leaves_rows_alone = false;  // the update, as far as can be told before a run

  // Of a step that reduces to a number.
  const Reduction& reduction_of(NodeId node) const {
    return *std::ranges::find(reductions, node, &Reduction::node);
  }
};

struct PlanStep {
  enum class Kind : std::uint8_t {
    kNode,          // one node, replica by replica
    kNodes,         // small nodes that do not wait for each other, side by side
    kRows,          // a product of the rows of all replicas with one matrix
    kLoop,          // a loop over examples
    kAllReduce,     // the collectives that run together
    kReduceUpdate,  // reductions, their all-reduce and the update of them
    kNameRows,      // which rows a RowUpdate has to touch
    kRowReduce,     // a number that a RowUpdate's rows are reduced to, by the last node
    kRowUpdate,     // the update of a RowUpdate
    kControl        // a branch or a loop of the program
  } kind;
  std::vector<NodeId> nodes;
  // By the kind, the number that one of these gives.
  std::int32_t index = -1;
  std::vector<Prepared> prepare;          // done before the step, if not kept from another round
  std::vector<std::int32_t> pieces = {};  // kNodes: where what a thread takes at a time ends

  LoopId loop() const {
    SG_ASSERT(kind == Kind::kLoop, "kind ", int(kind));
    return LoopId(index);
  }
  UpdateId update() const {
    SG_ASSERT(kind == Kind::kReduceUpdate, "kind ", int(kind));
    return UpdateId(index);
  }
  RowUpdateId row_update() const {
    SG_ASSERT(kind == Kind::kNameRows || kind == Kind::kRowReduce || kind == Kind::kRowUpdate,
              "kind ", int(kind));
    return RowUpdateId(index);
  }
};

// The steps between which a value needs memory of the run's arena.
struct Life {
  StepId first, last;
  Value home;  // whose memory it is; kNoValue: it is elsewhere, or is used by nobody
};

// How a write of the graph reaches its variable.
enum class Store : std::uint8_t {
  kNothing,  // the variable gets the value that it has
  kInPlace,  // the producer stores into the variable's memory
  kCopy,     // copied into it when all steps are over
  kReplace   // copied into a new array, as the old value is still read
};

struct PlanOptions {
  PassOptions passes;
  bool inner_loops = true;       // big intermediate results one example at a time
  bool defer_products = true;    // big weight gradients after the loop
  bool cut_products = true;      // products with big weights outside of loops, all rows at once
  bool fuse_updates = true;      // big weight gradients and the updates by them block by block
  bool sparse_rows = true;       // gradients of gathers as rows, never as a whole
  bool write_in_place = true;    // updates store into the variables' memory
  bool join_small_nodes = true;  // small operations side by side
  bool operator==(const PlanOptions&) const = default;
};

struct Plan {
  Graph graph;
  IndexedVector<StepId, PlanStep> steps;
  IndexedVector<LoopId, Loop> loops;
  IndexedVector<UpdateId, ReduceUpdate> updates;
  IndexedVector<RowUpdateId, RowUpdate> row_updates;
  PerValue<Storage> storage;
  PerValue<Value> root;                 // whose bytes it shows (its own mostly)
  PerValue<bool> has_rows;              // by root: its bytes are rows of examples to somebody
  PerNode<bool> joint;                  // goes through the rows of all replicas as one list
  PerValue<bool> joint_sum;             // a sum over the rows of all replicas of a process
  PerNode<std::int32_t> prepared_slot;  // of its prepared operand, or -1
  PerValue<bool> inner_value;           // lives for one example of an inner loop
  PerValue<Life> lives;
  std::int32_t prepared_slots = 0;
  std::vector<Store> stores;  // per write
  // Where replicas are spread over processes, the sums of a step are on their way while later ones
  // run: up to this one, which has to wait for them, or the end. Of other steps the end.
  IndexedVector<StepId, StepId> sums_due;
  // Of the products in loops: the weights that one pass streams, before and after some left.
  std::int64_t loop_weights = 0, kept_weights = 0;
  // Of control nodes: the plans of the graphs among their attributes, in that order.
  std::map<NodeId, std::vector<Plan>> bodies;
  // Of loops: what their rounds write where it is.
  std::map<NodeId, std::vector<RowWrite>> row_writes;
  bool has_random = false;
};

// Marks what the rounds of a loop share: its body reads arguments from `first_operand` on that are
// the same in all rounds.
void keep_prepared(Plan& body, std::size_t first_operand);

// Passes, phases, storage.
Plan compile(Graph graph, const PlanOptions& options = {});

}  // namespace samegrad
