// In-place row writes: finds the loop variables that iterations change by single rows. Such an
// iteration costs the rows it writes, however large the variable is.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

struct ElementWrite {
  std::size_t variable = 0;
  bool adds = false;  // to the row, instead of replacing it
};

// The writes of a loop's iteration, in order. The body then returns, behind its other results, the
// index and the row of each. In place of such a variable it returns an index without readers. Empty
// where a history must tell the variable before each iteration.
std::vector<ElementWrite> take_element_writes(const Graph& graph, const Node& loop, Graph& body);

}  // namespace samegrad
