// Rewrites of a whole graph, taken after all gradients. Every pass keeps the bits.
#pragma once

#include "ir/graph.h"

namespace samegrad {

struct PassOptions {
  bool fold_constants = true;
  bool eliminate_common = true;
  bool commute_masks = true;
  bool fuse_epilogue = true;
  bool fuse_elementwise = true;
  bool eliminate_dead = true;
  bool forward_identities = true;
  bool forward_broadcasts = true;
  bool expand_rows = true;
  bool operator==(const PassOptions&) const = default;
};

// Elements of 16 bits are not numbers to compute with: each operation that computes gets them as
// float32, and its result is rounded. So a sum over examples, or over replicas, is one of float32
// until its root. Not an option: there are no kernels for them.
Graph widen(Graph graph);
// Without what the program says about gradients, in bodies either; run_passes begins with it.
Graph without_gradient_rules(Graph graph);
// Rows of several functions that fused loops do as well become these.
Graph expand_rows(Graph graph);
// Nodes whose operands are all constants become constants.
Graph fold_constants(Graph graph);
// Equal nodes become one (random ones excepted).
Graph eliminate_common(Graph graph);
// relu's mask moves from the large side of a max pooling's gradient to the small one.
Graph commute_masks(Graph graph);
// Products take the bias and relu that follow into their epilogue.
Graph fuse_epilogue(Graph graph);
// Chains of elementwise nodes become one loop.
Graph fuse_elementwise(Graph graph);
// Copy propagation: readers of an identity read its operand, so that the identity does not prevent
// fusion. This includes stop_gradient, as gradients are already taken.
Graph forward_identities(Graph graph);
// Makes a broadcast read its operand without the leading axes of size 1 that a reshape added.
Graph forward_broadcasts(Graph graph);
// Dead code elimination: removes nodes that no output and no variable needs.
Graph eliminate_dead(Graph graph);

// Graphs are verified after each pass, and plans after each planning function: with
// SAMEGRAD_VERIFY=1, and always in builds with assertions.
bool verifies_programs();

// All that are switched on, in the order above.
Graph run_passes(Graph graph, const PassOptions& options);

}  // namespace samegrad
