#include "ir/graph.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/op_def.h"

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

OpRegistry& OpRegistry::instance() {
  static OpRegistry registry;
  return registry;
}

void OpRegistry::add(OpDef def) {
  ops_.push_back(std::make_unique<OpDef>(std::move(def)));
}

const OpDef* OpRegistry::find(std::string_view name) const {
  for (const auto& op : ops_) {
    if (op->name == name) return op.get();
  }
  return nullptr;
}

const OpDef& OpRegistry::get(std::string_view name) const {
  const OpDef* op = find(name);
  if (!op) fail(ErrorKind::kValue, "op table", "there is no op named '", name, "'.");
  return *op;
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> ops;
  for (const auto& op : ops_) ops.push_back(op.get());
  return ops;
}

bool may_raise(const Graph& graph, const Node& node) {
  return node.op->has(kMayRaise) &&
         !(node.op->has(kElementwise) && is_floating(graph.type(node.inputs[0]).dtype));
}

bool holds(const Node& node, std::uint32_t traits) {
  return (node.op->traits & traits) != 0 ||
         std::ranges::any_of(node.regions,
                             [&](const GraphPtr& region) { return contains(*region, traits); });
}

bool contains(const Graph& graph, std::uint32_t traits) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return holds(node, traits); });
}

}  // namespace samegrad
