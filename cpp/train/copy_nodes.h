// Copies of nodes from the graph of a program or trace into the graph of another trace.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "train/source_lines.h"

namespace samegrad {

// Copies the nodes of `from` that begin at `begin`, and the calls that they are, to the end of
// `to`. `map` has the values of `to` for values of `from`: nodes whose results it has are left out,
// and the results of copies are added to it. run_of(run) returns the run of a call in `to`.
void copy_nodes(const Graph& from, NodeId begin, Graph& to, SourceLines& lines,
                PerValue<Value>& map, const std::function<std::int32_t(std::int32_t)>& run_of);

}  // namespace samegrad
