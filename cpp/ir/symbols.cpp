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
  symbol.size = symbol.size.with_symbols([this](int part) { return (*this)(part); });
  int to = 0;
  while (std::size_t(to) < to_.size() &&
         (symbol.kind == Symbol::Kind::kInput || symbol.kind == Symbol::Kind::kLength ||
          !to_[std::size_t(to)].same_rule(symbol))) {
    ++to;
  }
  if (std::size_t(to) == to_.size()) to_.push_back(std::move(symbol));
  bind(from, to);
  return to;
}

ValueType SymbolMap::operator()(ValueType type) {
  if (type.batched()) type.batch.symbol = (*this)(type.batch.symbol);
  for (int axis = 0; axis < type.shape.rank(); ++axis) type.shape[axis] = dim(type.shape[axis]);
  return type;
}

std::int64_t SymbolMap::dim(std::int64_t dim) {
  return is_symbolic(dim) ? kSymbols + (*this)(int(dim - kSymbols)) : dim;
}

Node SymbolMap::operator()(Node node) {
  node.attrs = node.attrs.with_integers([this](std::int64_t number) { return dim(number); });
  for (GraphPtr& region : node.regions) region = std::make_shared<const Graph>(body(*region));
  return node;
}

Graph SymbolMap::body(const Graph& graph) {
  std::vector<int> given;
  for (std::size_t s = 0; s < graph.symbols.size(); ++s) {
    const bool input = graph.symbols[s].kind == Symbol::Kind::kInput;
    given.push_back(input ? (*this)(int(s)) : -1);
  }
  Graph mapped = graph;
  mapped.symbols.assign(to_.begin(), to_.end());
  SymbolMap inside(graph.symbols, mapped.symbols);
  for (std::size_t s = 0; s < given.size(); ++s) {
    if (given[s] >= 0) inside.bind(int(s), given[s]);
  }
  for (ValueInfo& value : mapped.values) value.type = inside(value.type);
  for (Node& node : mapped.nodes) node = inside(std::move(node));
  return mapped;
}

}  // namespace samegrad
