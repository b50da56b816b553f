#include "passes/passes.h"

namespace samegrad {

// Not written yet: chains run node by node, on tiles that are in cache.
Graph fuse_elementwise(Graph graph) { return graph; }

}  // namespace samegrad
