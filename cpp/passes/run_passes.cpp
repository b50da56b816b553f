#include "passes/commute_all_reduce.h"
#include "passes/passes.h"

namespace samegrad {

Graph run_passes(Graph graph, const PassOptions& options) {
  graph = commute_all_reduce(std::move(graph));
  const struct {
    bool wanted;
    Graph (*pass)(Graph);
  } passes[] = {
      {options.eliminate_dead, eliminate_dead},     {options.fold_constants, fold_constants},
      {options.eliminate_common, eliminate_common}, {options.sink_masks, sink_masks},
      {options.eliminate_dead, eliminate_dead},     {options.fuse_epilogue, fuse_epilogue},
      {options.fuse_elementwise, fuse_elementwise}, {options.fold_constants, fold_constants},
      {options.eliminate_common, eliminate_common}, {options.eliminate_dead, eliminate_dead},
  };
  for (const auto& [wanted, pass] : passes) {
    if (!wanted) continue;
    graph = pass(std::move(graph));
#ifndef NDEBUG
    verify(graph);
#endif
  }
  return graph;
}

}  // namespace samegrad
