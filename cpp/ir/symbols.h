// Symbols of one graph in terms of another's.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace samegrad {

// Carries types, and the attributes and regions of nodes, from a graph over to one with other
// symbols.
class SymbolMap {
 public:
  SymbolMap(const std::vector<Symbol>& from, std::vector<Symbol>& to)
      : from_(from), to_(to), map_(from.size(), -1) {}

  void bind(int from, int to);
  // True if the symbol was mapped.
  bool knows(int from) const { return map_[std::size_t(from)] >= 0; }
  // The symbol over there; a new one if there is none by the same rule.
  int operator()(int from);
  ValueType operator()(ValueType type);
  // A size as shapes and attributes hold it.
  std::int64_t dim(std::int64_t dim);
  // With its attributes and regions, which begin with the symbols of the graph that it is in.
  Node operator()(Node node);

 private:
  Graph body(const Graph& graph);

  const std::vector<Symbol>& from_;
  std::vector<Symbol>& to_;
  std::vector<int> map_;
};

}  // namespace samegrad
