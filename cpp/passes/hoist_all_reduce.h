// Commutes all-reduces with linear functions. The results of replicas are bitwise identical to one
// device's only with this rewrite, so no option switches it off.
#pragma once

#include "ir/graph.h"

namespace samegrad {

// An all-reduce of a linear function of sums becomes the function of their all-reduces, in branches
// and iterations.
Graph hoist_all_reduce(Graph graph);

}  // namespace samegrad
