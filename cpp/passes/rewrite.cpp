#include "passes/rewrite.h"

namespace samegrad {

Rewriter::Rewriter(const Graph& from)
    : from_(from), builder_(to_), map_(from.values.size(), kNoValue) {
  to_.arguments = from.arguments;
  to_.variables = from.variables;
  to_.constants = from.constants;
  to_.symbols = from.symbols;
  to_.locations = from.locations;
  to_.replicas = from.replicas;
  for (std::size_t v = 0; v < from.values.size(); ++v) {
    if (from.values[v].source == Source::kNode) continue;
    map_[v] = Value(to_.values.size());
    to_.values.push_back(from.values[v]);
  }
}

Values Rewriter::operator()(const std::vector<Value>& old) const {
  Values fresh;
  for (Value value : old) fresh.push_back(map_[std::size_t(value)]);
  return fresh;
}

void Rewriter::copy(const Node& node) {
  // Not through the shape rule: it would make new symbols for old ones.
  Node fresh = node;
  fresh.inputs = (*this)(node.inputs);
  fresh.outputs.clear();
  for (Value output : node.outputs) {
    ValueInfo info = from_.values[std::size_t(output)];
    info.index = std::int32_t(to_.nodes.size());
    fresh.outputs.push_back(Value(to_.values.size()));
    replace(output, fresh.outputs.back());
    to_.values.push_back(info);
  }
  to_.nodes.push_back(std::move(fresh));
}

Graph Rewriter::finish() {
  to_.outputs = (*this)(from_.outputs);
  for (const StateWrite& write : from_.writes)
    to_.writes.push_back({write.variable, (*this)(write.value)});
  return std::move(to_);
}

std::vector<int> count_uses(const Graph& graph) {
  std::vector<int> uses(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (Value input : node.inputs) ++uses[std::size_t(input)];
  }
  for (Value output : graph.outputs) ++uses[std::size_t(output)];
  for (const StateWrite& write : graph.writes) ++uses[std::size_t(write.value)];
  return uses;
}

}  // namespace samegrad
