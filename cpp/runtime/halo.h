// Halo: the examples of the following processes that complete the last leaf of this process's tree.
// They are at most three. Processes whose examples end with a leaf need none of them.
#pragma once

#include <optional>
#include <vector>

#include "runtime/execute_params.h"
#include "runtime/world_tree.h"

namespace samegrad {

// The tree over the examples of each symbol in the world. A count that joins the replicas has
// none.
using ExampleTrees = std::vector<std::optional<WorldTree>>;
ExampleTrees example_trees(const std::vector<Symbol>& symbols, const Counts& of_world,
                           const Communicator& world);

// Gets the rows of arguments that this process needs, and gives others theirs: all processes do so
// at the same time. The call has a replica more afterwards if there are any (ExecuteParams::halo).
void add_halo(const Graph& graph, ExecuteParams& call);

}  // namespace samegrad
