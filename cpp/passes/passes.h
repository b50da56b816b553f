// Rewrites of a whole graph, taken after all gradients. Every pass keeps the bits.
#pragma once

#include "ir/graph.h"

namespace samegrad {

// The nodes that leave the loop that could run them.
struct LeaveLoops {
  bool large_reductions = true;  // of which each leaf would pass through the whole result
  bool large_products = true;    // all rows at once, where a loop streams too many weights
  bool operator==(const LeaveLoops&) const = default;
};

struct PassOptions {
#define SAMEGRAD_PASS(name, doc) bool name = true;
#include "passes/passes.def"
#undef SAMEGRAD_PASS
  LeaveLoops leave_loops;
  bool operator==(const PassOptions&) const = default;

  // The lowerings alone.
  static constexpr PassOptions none() {
    PassOptions options;
#define SAMEGRAD_PASS(name, doc) options.name = false;
#include "passes/passes.def"
#undef SAMEGRAD_PASS
    return options;
  }
};

#define SAMEGRAD_PASS(name, doc) Graph name(Graph graph);
#define SAMEGRAD_PASS_BY_LOOPS(name, doc) Graph name(Graph graph, const LeaveLoops& leave = {});
#include "passes/passes.def"
#undef SAMEGRAD_PASS

// Lowerings, which no option leaves out: kernels or the promised bits need them.

// Type promotion: each operation that computes gets elements of 16 bits as float32, and its result
// is rounded. So a sum over examples, or over replicas, is one of float32 until its root.
Graph promote_types(Graph graph);
// Removes what the program says about gradients, in bodies as well.
Graph without_gradient_rules(Graph graph);

// Graphs are verified after each pass, and plans after each planning function: with
// SAMEGRAD_VERIFY=1, and always in builds with assertions.
bool verifies_programs();

// The lowerings, and the passes that are switched on.
Graph run_passes(Graph graph, const PassOptions& options);

}  // namespace samegrad
