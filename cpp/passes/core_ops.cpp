#include "passes/core_ops.h"

#include "passes/replay.h"

namespace samegrad {

Graph core_ops(const Graph& graph) {
  Graph made;
  made.arguments = graph.arguments;
  made.variables = graph.variables;
  made.constants = graph.constants;
  made.replicas = graph.replicas;
  made.symbols = graph.symbols;
  Builder builder(made);
  Replay replay(graph, builder, Replay::Ops::kCore);
  for (std::size_t s = 0; s < graph.symbols.size(); ++s) {
    replay.set_size(int(s), Size::of_symbol(int(s)));
  }
  for (Value v : graph.values.ids()) {
    const ValueInfo& info = graph.values[v];
    if (info.source != Source::kNode) replay.set_value(v, made.values.push_back(info));
  }
  replay.run_whole();
  return made;
}

}  // namespace samegrad
