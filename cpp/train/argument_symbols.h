// Arguments of a trace: their types, whose sizes get symbols.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/per_replica.h"
#include "ir/graph.h"

namespace samegrad {

class ArgumentSymbols {
 public:
  explicit ArgumentSymbols(Graph& graph) : graph_(graph) {}

  // Adds an argument of the graph with the type of these arrays. Its example axis gets the symbol
  // of earlier arguments that have as many examples on every replica, or `own_symbol`. `lengths`:
  // bits of the other axes whose sizes get symbols, too, each its own.
  Value add(const PerReplica<Array>& arrays, const ExampleAxis& batch, std::uint32_t lengths = 0,
            bool own_symbol = false);

 private:
  int symbol_for(const ExampleCounts& counts, bool own);

  Graph& graph_;
  std::vector<std::pair<int, ExampleCounts>> symbols_;
};

}  // namespace samegrad
