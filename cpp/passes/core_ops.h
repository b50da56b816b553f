// Lowers a program to core ops, the form that saved models hold.
#pragma once

#include "ir/graph.h"

namespace samegrad {

// The program with the decomposition of each op that has the bits of it, derivatives included, and
// in its bodies. Values, symbols and lines are otherwise what they were.
Graph core_ops(const Graph& graph);

}  // namespace samegrad
