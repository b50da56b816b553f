// Bindings of steps to the counts and the memory of a context: all that a run can know before it
// starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "plan/sparse_program.h"
#include "plan/steps.h"
#include "runtime/tree.h"
#include "tensor/buffer_pool.h"
#include "tensor/tree_accumulator.h"

namespace samegrad {

class ExecutionContext;

// The number of an address in the table of a context.
struct Address;
using AddressId = Id<Address>;

// Bytes behind an address.
struct AddressOffset {
  AddressId address;
  std::int64_t offset = 0;
};

// A subtree of the examples of a list that one task works through. The lists of a loop are its
// replicas'; of a joint one they are the subtrees that this process makes of all examples.
struct Chunk {
  int list = 0;  // -1: examples that are in none, another process's leaf having them
  std::int64_t begin = 0, end = 0;
  std::vector<AddressOffset> trees;  // of its tree results, per LoopStep::trees
  // Offsets of the states of unfinished subtrees in the task's scratch, per LoopBinding::blocks.
  std::vector<std::int64_t> partials;
  std::int64_t partial_bytes = 0;
};

// A block of a tree result of a list, which is joined from all of its chunks.
struct Join {
  int list;
  std::size_t tree;  // of LoopStep::trees
  Rect block;
};

// Scratch of a step that stores into variables, so must not fail for want of memory: for itself,
// and for each of its tasks.
struct StepScratch {
  std::size_t open = 0, task = 0;
};

// The binding of steps whose nodes are bound, or nothing.
struct NoBinding {
  StepScratch scratch = {};
};

// The chunks of a loop, those of a list next to each other in order of examples.
struct LoopBinding {
  // The blocks of the trees' states, which are folded by themselves, those of a tree together.
  std::vector<TileSet> blocks;
  std::vector<std::int32_t> first_block;  // per LoopStep::trees, and the end
  std::vector<Chunk> chunks;
  std::vector<std::int32_t> first_chunk;  // per list, and the end
  std::vector<Join> joins;
  bool parallel_joins = false;
  std::int64_t chunk_examples = 0;  // subtrees up to this size are chunks
  bool parallel = false;
  // Threads share each node of one chunk after the other, as there are fewer chunks than threads.
  bool wide = false;
  static constexpr StepScratch scratch = {};  // a loop may fail
};

// A node that runs on whole replicas: once, or once per replica if its results differ. The copies
// of a joint reduction are parts of one list of examples.
struct NodeBinding {
  std::vector<std::vector<View>> views;  // per copy: operands, then results
  std::vector<std::int64_t> examples;    // per copy
  std::vector<ValueType> types;          // of operands and results
  std::vector<Value> roots;              // of operands and results; none: its bytes are not read
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
  StepScratch scratch;  // to open the operands at most
  // True if this run updates values in memory that all ranks map (shared_state.h).
  bool in_common = false;
};

// A pass over rows: where things are in memory.
struct SparsePassBinding {
  // A value in a block of rows that are next to each other.
  struct PassOperand {
    Value value;
    std::int64_t row_bytes;
    std::int64_t offset;  // in the task's scratch
    // In a pass over all rows: a result that is written to its rows of the variable at once.
    bool direct = false;
  };
  SparsePassBinding(const Graph& graph, const SparseUpdate& update, const SparsePass& of)
      : pass(of), program(graph, update, of), registers(std::size_t(program.known.registers())) {}

  const SparsePass& pass;
  SparseProgram program;
  std::vector<LatticeValue> registers;
  std::vector<PassOperand> slots;  // of the sums, then of operands with all rows, then of results
  std::size_t block_bytes = 0, task_bytes = 0;  // of the slots; of all that a task takes
};

// Updates of rows, and what a run found out.
struct SparseUpdateBinding {
  SparseUpdateBinding(const Graph& graph, const SparseUpdate& of) : update(graph, of, of.update) {
    for (const SparseUpdate::Reduction& reduction : of.reductions) {
      reductions.emplace_back(graph, of, reduction.pass);
    }
  }

  SparsePassBinding update;
  std::vector<SparsePassBinding> reductions;
  std::int64_t rows = 0, width = 0;  // of the variable; elements of a row
  std::int64_t block_rows = 1;       // touched rows that go through a pass together
  std::int64_t most_rows = 1;        // rows that go through a pass over all rows together
  std::vector<SparsePassBinding::PassOperand> left;  // results of the update, and where they are
  std::vector<Value> old;       // of these: what they are where there is no gradient
  std::vector<Array> divisors;  // per sum, of a mean
  // Places that name rows, numbered through all sums and replicas, and where those of each begin.
  std::vector<std::int64_t> first;
  std::int64_t places = 0;
  // Rows that are named, in order, where the places of each begin among all, and the places.
  struct TouchedRows {
    std::byte *row = nullptr, *begin = nullptr, *place = nullptr;
    std::int64_t count = 0;
    // If several passes read them: the sums of these rows, one sum after the other.
    std::byte* summed = nullptr;
    std::vector<std::int64_t> summed_at;  // per sum, in bytes; none: passes add up for themselves
  };
  // In the arena.
  struct Reserved {
    AddressId sorted;  // places while they are sorted by rows
    AddressId row, begin, place, summed;
  } reserved;
  TouchedRows own;  // by this process, in the arena
  std::int64_t summed_bytes = 0;
  // The rows of the passes: own ones, or those of all processes, which have memory of their own.
  TouchedRows named;
  PooledBuffer of_world = {};

  template <class T>
  static T* as(std::byte* memory) {
    return reinterpret_cast<T*>(memory);
  }
};

struct StepToBind {
  const Plan& plan;
  const StepId step;
  ExecutionContext& context;
};

// Bind the kinds of steps, once nodes are bound.
inline NoBinding bind_step(const NodeStep&, const StepToBind&) {
  return {};
}
inline NoBinding bind_step(const SideBySideStep&, const StepToBind&) {
  return {.scratch = {.task = Scratch::kBlockBytes}};
}
inline NoBinding bind_step(const GroupedGemmStep&, const StepToBind&) {
  return {};
}
// Reserves memory for the states of the loop's tree reductions.
LoopBinding bind_step(const LoopStep& loop, const StepToBind& of);
inline NoBinding bind_step(const AllReduceStep&, const StepToBind&) {
  return {};
}
UpdateBinding bind_step(const BlockUpdateStep& step, const StepToBind& of);
inline NoBinding bind_step(const SparseRowsStep&, const StepToBind&) {
  return {};
}
inline NoBinding bind_step(const SparseReduceStep&, const StepToBind&) {
  return {};
}
inline NoBinding bind_step(const SparseUpdateStep&, const StepToBind&) {
  return {};
}
inline NoBinding bind_step(const ControlStep&, const StepToBind&) {
  return {};
}
using StepBinding = std::variant<NoBinding, LoopBinding, UpdateBinding>;

// Binds the steps of a sparse update, once nodes are bound, and reserves memory for named rows.
SparseUpdateBinding bind_sparse_update(const Plan& plan, const SparseUpdate& update,
                                       ExecutionContext& context);

}  // namespace samegrad
