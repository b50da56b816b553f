// Lowers a program to core ops, the form that saved models hold.
#pragma once

#include "ir/graph.h"

namespace samegrad {

// The program with the decomposition of each row that has the bits of it, derivatives included, and
// in its bodies. Values, symbols and lines are otherwise what they were.
Graph core_rows(const Graph& graph);

}  // namespace samegrad
