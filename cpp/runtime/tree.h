// Reductions over a whole list of examples: blocks of the result and subtrees of the examples, in
// parallel where the work is large enough.
#pragma once

#include "ir/graph.h"
#include "tensor/tree_accumulator.h"

namespace samegrad {

// Examples that are next to each other in the operands of a reduction, as opened.
struct OpenExamples {
  const void* operands;  // null if there are none
  std::int64_t examples;
};
std::int64_t count_examples(std::span<const OpenExamples> parts);

struct WholeReduction {
  const TreeReduction& reduction;
  std::span<const OpenExamples> parts;  // of one list of examples, in order
  std::int64_t begin, end;              // of them
  Accumulator target;
  // True if subtrees may have states of their own: false where most of these would be zeros.
  bool splits_examples = true;
  std::int64_t work = 0;  // a rough count of operations
};

// A block of the result over the examples [begin, end) of a list; `state` is the block's.
struct ReducedBlock {
  std::int64_t begin, end;
  const Rect& block;
  Accumulator state;
  const PrefetchBlocks* prefetch = nullptr;  // of the block, which is complete afterwards
};
void reduce_block(const TreeReduction& reduction, std::span<const OpenExamples> parts,
                  const ReducedBlock& at, Scratch& scratch);

// Sums n elements of each replica in the order of the tree over the replicas; `out` is none of
// them. Takes kReplicaTree.levels(x.size()) times as many bytes of scratch.
void sum_of_replicas(std::span<const std::byte* const> x, DType dtype, std::int64_t n,
                     std::byte* out, Scratch& scratch);
// Sums the replicas into scratch and returns the sum: for one replica, its own elements.
const std::byte* sum_of_replicas(std::span<const std::byte* const> x, DType dtype, std::int64_t n,
                                 Scratch& scratch);

// True if the sums of an all-reduce are divided by the number of replicas; divide() does that.
bool is_mean(const Node& all_reduce);
void divide(std::byte* sums, std::int64_t n, const Array& divisor);

void reduce_whole(const WholeReduction& whole, const ParallelFor& loops, Scratch& scratch);

}  // namespace samegrad
