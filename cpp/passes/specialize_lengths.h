// Specializes a trace with symbols for lengths to the program of given lengths.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace samegrad {

// True if sizes of arguments are lengths (Symbol::Kind::kLength).
bool has_lengths(const Graph& graph);

// The program that a trace with these lengths would have been: numbers replace them in types and
// attributes, and each node is what its op's rule makes of it. `lengths`: by symbol of the graph,
// those of other kinds are ignored; what the trace took for granted of lengths (holds_for) must be
// true of them. ValueError where an operation is not possible with the lengths.
Graph specialize_lengths(const Graph& graph, const std::vector<std::int64_t>& lengths);

}  // namespace samegrad
