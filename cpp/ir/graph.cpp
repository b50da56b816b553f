#include "ir/graph.h"

namespace samegrad {

const Node* Graph::producer(Value value) const {
  const ValueInfo& info = values[std::size_t(value)];
  return info.source == Source::kNode ? &nodes[std::size_t(info.index)] : nullptr;
}

namespace {
Value push(Graph& graph, const ValueType& type, Source source, std::size_t index,
           Placement placement = Placement::kReplicated) {
  graph.values.push_back({type, source, std::int32_t(index), 0, placement});
  return Value(graph.values.size() - 1);
}
}  // namespace

Value Graph::add_argument(const ValueType& type, Placement placement) {
  arguments.push_back({placement});
  return push(*this, type, Source::kArgument, arguments.size() - 1, placement);
}

Value Graph::add_read(std::int32_t variable, const ValueType& type) {
  const bool own = variables[std::size_t(variable)].components > 1;
  return push(*this, type, Source::kVariable, std::size_t(variable),
              own ? Placement::kOwn : Placement::kReplicated);
}

Value Graph::add_constant(const Array& array, const ExampleAxis& batch) {
  constants.push_back(array);
  return push(*this, {array.dtype(), array.shape(), batch}, Source::kConstant,
              constants.size() - 1);
}

int Graph::add_symbol(const Symbol& symbol) {
  symbols.push_back(symbol);
  return int(symbols.size() - 1);
}

}  // namespace samegrad
