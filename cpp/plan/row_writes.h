// Which variables of a loop its rounds change by single rows, so that these can be written where
// the variable is: a round then costs what it writes, however large the variable is.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

struct RowWrite {
  std::size_t variable = 0;
  bool adds = false;  // to the row, instead of replacing it
};

// The writes of a loop's round, in order. The body then returns, behind its other results, the
// index and the row of each; in place of such a variable it returns an index, which nobody reads.
// Not where a history is read that must tell what the variable was before each round.
std::vector<RowWrite> take_row_writes(const Graph& graph, const Node& loop, Graph& body);

}  // namespace samegrad
