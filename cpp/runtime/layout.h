// Memory layout of a plan: offsets of tiles in a task's scratch, and of other values in the run's
// arena.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "tensor/tree_accumulator.h"

namespace samegrad {

// The position of an operand or result of a loop's node.
struct Operand {
  Value root = kNoValue;
  std::int64_t tile_offset = -1;  // in the task's scratch, or -1: a base pointer of the run
  bool inner = false;             // one example only
  bool type_only = false;         // or the result of a tree
  std::int64_t stride = 0;        // bytes per example; 0 if not batched
  std::int64_t rows = 0;          // rows per example; 0 if not batched
};

struct LoopNode {
  const Node* node = nullptr;
  NodeId index;
  std::vector<Operand> operands;  // inputs, then outputs
  std::size_t first_view = 0;     // of the first operand in LoopLayout::views
  std::int32_t inputs = 0;
  std::int32_t prepacked_slot = -1;
  std::int32_t tree = -1;  // a reduction over the examples: its index in LoopStep::trees
  bool skip = false;       // only shows other bytes
};

struct LoopLayout {
  std::vector<LoopNode> nodes;
  // Views of all operands of all nodes; a task's copy gets its addresses and numbers of rows.
  std::vector<View> views;
  std::int64_t tile_examples = 4;  // a tile is a subtree of at most this many examples
  std::int64_t tile_bytes = 0;
  std::vector<TreeReduction> trees;  // per LoopStep::trees
  double work = 0;                   // a rough count of operations per example
};

LoopLayout lay_out(const Plan& plan, const LoopStep& loop);
// ValueError if a node of the loop reads bytes of a tile that another value has overwritten.
void verify(const Plan& plan, const LoopStep& loop, const LoopLayout& layout);

// Memory that holds a value of a type in a concrete shape.
View view_of(const ValueType& type, const Shape& shape, void* data = nullptr);
// Memory that holds a value of a type with one example.
View view_of_example(ValueType type, void* data = nullptr);

}  // namespace samegrad
