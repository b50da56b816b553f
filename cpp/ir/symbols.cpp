#include "ir/symbols.h"

namespace samegrad {

void SymbolMap::bind(int from, int to) {
  map_[std::size_t(from)] = to;
  if (from_[std::size_t(from)].fixed) to_[std::size_t(to)].fixed = true;
}

int SymbolMap::operator()(int from) {
  if (map_[std::size_t(from)] >= 0) return map_[std::size_t(from)];
  Symbol symbol = from_[std::size_t(from)];
  for (int& part : symbol.parts) part = (*this)(part);
  int to = 0;
  while (std::size_t(to) < to_.size() &&
         (symbol.kind == Symbol::Kind::kInput || !to_[std::size_t(to)].same_rule(symbol))) {
    ++to;
  }
  if (std::size_t(to) == to_.size()) to_.push_back(std::move(symbol));
  bind(from, to);
  return to;
}

ValueType SymbolMap::operator()(ValueType type) {
  if (type.batched()) type.batch.symbol = (*this)(type.batch.symbol);
  return type;
}

Attrs SymbolMap::operator()(const Attrs& attrs) {
  Attrs mapped = attrs;
  for (const auto& [name, value] : attrs.items()) {
    const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&value);
    if (graph) mapped.set(name, std::make_shared<const Graph>(body(**graph)));
  }
  return mapped;
}

Graph SymbolMap::body(const Graph& graph) {
  std::vector<int> given;
  for (std::size_t s = 0; s < graph.symbols.size(); ++s) {
    const bool input = graph.symbols[s].kind == Symbol::Kind::kInput;
    given.push_back(input ? (*this)(int(s)) : -1);
  }
  Graph mapped = graph;
  mapped.symbols = to_;
  SymbolMap inside(graph.symbols, mapped.symbols);
  for (std::size_t s = 0; s < given.size(); ++s) {
    if (given[s] >= 0) inside.bind(int(s), given[s]);
  }
  for (ValueInfo& value : mapped.values) value.type = inside(value.type);
  for (Node& node : mapped.nodes) node.attrs = inside(node.attrs);
  return mapped;
}

}  // namespace samegrad
