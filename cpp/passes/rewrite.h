// Rewriter: copies a graph node by node and replaces values, for all passes.
#pragma once

#include <vector>

#include "ir/builder.h"

namespace samegrad {

class Rewriter {
 public:
  explicit Rewriter(const Graph& from);
  // Leaves out the constants that are not needed.
  Rewriter(const Graph& from, const PerValue<bool>& needed);

  const Graph& from() const { return from_; }
  Graph& to() { return to_; }
  Builder& builder() { return builder_; }

  // The new value for an old one (made already).
  Value operator()(Value old) const { return map_[old]; }
  Values operator()(const std::vector<Value>& old) const;
  void replace(Value old, Value fresh) { map_[old] = fresh; }
  // Copies a node with its operands replaced.
  void copy(const Node& node) { copy(node, (*this)(node.inputs)); }
  // Copies a node with these operands.
  void copy(const Node& node, Values inputs);
  // The finished graph, with outputs and writes.
  Graph finish();

 private:
  void copy_outside(const PerValue<bool>* needed);

  const Graph& from_;
  Graph to_;
  Builder builder_;
  PerValue<Value> map_;
};

// The graph without what its outputs do not need: it writes no variable and shows nothing, in
// bodies either.
Graph without_effects(const Graph& graph);
Node without_effects(const Node& node);

// The number of reads of each value by nodes, outputs and writes.
PerValue<int> count_uses(const Graph& graph);
// True if the value is a result, or a node reads more than its type; writes do not count.
bool is_read(const Graph& graph, Value value);

}  // namespace samegrad
