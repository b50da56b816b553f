#include "ir/graph.h"

namespace samegrad {

const Node* Graph::producer(Value value) const {
  const ValueInfo& info = values[value];
  return info.source == Source::kNode ? &nodes[info.node()] : nullptr;
}

namespace {
Value push(Graph& graph, const ValueType& type, Source source, std::size_t index,
           Placement placement = Placement::kReplicated) {
  return graph.values.push_back({type, source, std::int32_t(index), 0, placement});
}
}  // namespace

Value Graph::add_argument(const ValueType& type, Placement placement) {
  arguments.push_back({placement});
  return push(*this, type, Source::kArgument, arguments.size() - 1, placement);
}

void Graph::set_arguments(const Values& order) {
  arguments.clear();
  for (Value value : order) {
    values[value].index = std::int32_t(arguments.size());
    arguments.push_back({placement(value)});
  }
}

Value Graph::add_read(SlotId variable, const ValueType& type) {
  const bool own = variables[variable].components > 1;
  return push(*this, type, Source::kVariable, variable.index(),
              own ? Placement::kVarying : Placement::kReplicated);
}

Value Graph::add_constant(const Array& array, const ExampleAxis& batch) {
  const ConstantId constant = constants.push_back(array);
  return push(*this, {array.dtype(), array.shape(), batch}, Source::kConstant, constant.index());
}

int Graph::add_symbol(const Symbol& symbol) {
  symbols.push_back(symbol);
  return int(symbols.size() - 1);
}

Values argument_values(const Graph& graph) {
  Values values(graph.arguments.size(), kNoValue);
  for (Value v : graph.values.ids()) {
    const ValueInfo& info = graph.values[v];
    if (info.source == Source::kArgument) values[info.argument()] = v;
  }
  return values;
}

}  // namespace samegrad
