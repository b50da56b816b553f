#include "passes/passes.h"
namespace samegrad {
Graph sink_masks(Graph graph) {
  return graph;
}
Graph fuse_epilogue(Graph graph) {
  return graph;
}
Graph fuse_elementwise(Graph graph) {
  return graph;
}
}  // namespace samegrad
