#include "passes/specialize_lengths.h"

#include <algorithm>

#include "passes/replay.h"

namespace samegrad {

bool has_lengths(const Graph& graph) {
  return std::ranges::any_of(
      graph.symbols, [](const Symbol& symbol) { return symbol.kind == Symbol::Kind::kLength; });
}

Graph specialize_lengths(const Graph& graph, const std::vector<std::int64_t>& lengths) {
  Graph made;
  made.arguments = graph.arguments;
  made.variables = graph.variables;
  made.constants = graph.constants;
  made.replicas = graph.replicas;
  made.symbols.replicas = graph.symbols.replicas;
  Builder builder(made);
  Replay replay(graph, builder);
  // In their order, in which arguments count examples.
  for (std::size_t s = 0; s < graph.symbols.size(); ++s) {
    const Symbol& symbol = graph.symbols[s];
    if (symbol.kind == Symbol::Kind::kLength) replay.set_size(int(s), lengths[s]);
    if (symbol.kind == Symbol::Kind::kInput) {
      replay.set_size(int(s), Size::of_symbol(made.add_symbol(symbol)));
    }
  }
  for (Value v : graph.values.ids()) {
    ValueInfo info = graph.values[v];
    if (info.source == Source::kNode) continue;
    info.type = replay.type(info.type);
    replay.set_value(v, made.values.push_back(info));
  }
  replay.run_whole();
  return made;
}

}  // namespace samegrad
