// Cost model: chooses among plans of equal bits, and predicts the time of steps.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace samegrad {

// True if a sum over the examples or replicas may be one step with the update that reads it.
// Updates are the last steps: the operands of the sum stay alive until then, in place of the sum.
bool is_profitable_to_fuse(const Graph& graph, const Node& reduction);

// The weights of a product, or the sums of a reduction, that each call of the node passes through
// however few examples it has; 0: it has neither.
std::int64_t bytes_per_call(const Graph& graph, const Node& node);

// True if a loop reads its weights from beyond L2 for each tile.
bool streams_weights(const LoopStep& loop);

// Chooses the examples of a tile for each loop: their data stays in cache, unless passing over the
// weights for so few examples costs more.
void choose_tiles(PlanDraft& plan);

// The operations of a call of a node, and the bytes that it reads of each operand and writes.
struct Cost {
  double flops = 0, written = 0;
  std::vector<double> read;

  double bytes() const;
};
Cost cost_of(const Graph& graph, const Node& node, const std::vector<std::int64_t>& counts);
// The number of rows that examples name in a sparse reduction over them, repeated ones included.
std::int64_t named_rows(const Graph& graph, const Node& tree,
                        const std::vector<std::int64_t>& counts);
// The rate of an op's operations, as a share of that of products.
double rate_of(const OpDef& op, const Attrs& attrs);
// True if a call is worth several threads.
bool should_parallelize(const OpDef& op, const CostArgs& call);
// True if threads share the node, as far as this is known without counts of examples.
bool is_shared(const Graph& graph, const Node& node);
// True if the node's memory is reserved before a run: the op declares its scratch, the node sees no
// examples, and it needs no more than each task has anyway.
bool has_bounded_scratch(const Graph& graph, const Node& node);
// The operations of one example. They decide whether a loop is worth several threads.
double work_of_example(const Graph& graph, const Node& node);

// The throughput of all threads of a machine per second. It is measured, so it feeds predictions
// only: no plan depends on it.
struct Rates {
  double flops = 0, double_flops = 0;  // of products of floats and of doubles
  double cache_bytes = 0;              // what stays in L2
  double memory_bytes = 0;             // what does not
  double line_seconds = 0;             // until a line of memory is there
  double fork_seconds = 0;             // until all threads are at work
  int threads = 1;
};

// Seconds that each step is predicted to take with these counts of examples (per replica and
// symbol): its nodes' computing or moving bytes within caches, whichever takes longer, and what the
// step and its calls cost by themselves. A run that passes over more bytes than the caches have
// waits for its buffers, its code and the plan as well. Control flow is without its bodies.
std::vector<double> predict(const PlanDraft& plan, const Counts& counts, const Rates& rates);
// Iterations of a node of control flow: the most that a loop may have, 1 where no bound is known,
// and of a branch.
double predict_iterations(const PlanDraft& plan, NodeId node, const Counts& counts);

}  // namespace samegrad
