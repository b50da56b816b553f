// Verifier: the rules that every graph satisfies after tracing and after each pass.
#include <set>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "ir/placement.h"

namespace samegrad {
namespace {

class GraphVerifier {
 public:
  explicit GraphVerifier(const Graph& graph)
      : graph_(graph), symbols_(graph.symbols), made_(graph.values.size(), false) {}

  void run() {
    for (Value v : graph_.values.ids()) check_origin(v);
    for (NodeId n : graph_.nodes.ids()) check_node(n);
    for (Value output : graph_.outputs) check_made(output, "graph", "output");
    check_writes();
  }

 private:
  // Values of nodes are looked at with their nodes.
  void check_origin(Value v) {
    const ValueInfo& info = graph_.values[v];
    if (info.source == Source::kNode) return;
    made_[v] = true;
    const std::size_t size = info.source == Source::kArgument   ? graph_.arguments.size()
                             : info.source == Source::kVariable ? graph_.variables.size()
                                                                : graph_.constants.size();
    SG_CHECK_VALUE(info.index >= 0 && std::size_t(info.index) < size, "graph", "value %", v,
                   " comes from number ", info.index, " of ", size, ".");
    if (info.source != Source::kConstant) return;
    const Array& array = graph_.constants[info.constant()];
    SG_CHECK_VALUE(
        array.dtype() == info.type.dtype && array.shape().rank() == info.type.shape.rank(), "graph",
        "constant %", v, " is called ", to_string(info.type), ": it is ", name_of(array.dtype()),
        " ", to_string(array.shape()), ".");
  }

  void check_made(Value value, std::string_view op_name, const char* what) const {
    SG_CHECK_VALUE(graph_.values.contains(value), op_name, what, " %", value,
                   " is not a value of the graph.");
    SG_CHECK_VALUE(made_[value], op_name, what, " %", value, " is used before it is made.");
  }

  void check_node(NodeId n) {
    const Node& node = graph_.nodes[n];
    std::vector<ValueType> types;
    for (Value input : node.inputs) {
      check_made(input, node.op->name, "operand");
      types.push_back(graph_.type(input));
    }
    check_arity(*node.op, node.inputs.size());
    check_regions(*node.op, node.regions.size());
    SG_CHECK_VALUE(node.attrs.schema() == node.op->attrs, node.op->name, "attributes must be of ",
                   node.op->attrs ? node.op->attrs->name : "no struct", ".");
    for (const GraphPtr& region : node.regions) verify(*region);
    const Inferred inferred = node.op->infer({*node.op, types, node.attrs, symbols_, node.regions});
    SG_CHECK_VALUE(inferred.types.size() == node.outputs.size(), node.op->name, "should have ",
                   inferred.types.size(), " results but has ", node.outputs.size(), ".");
    SG_CHECK_VALUE(inferred.locality == node.locality, node.op->name, "should be of locality ",
                   int(inferred.locality), " but is of ", int(node.locality), ".");
    for (std::size_t i = 0; i < node.outputs.size(); ++i) check_result(n, i, inferred);
    if (!node.op->has(kAliases)) return;
    // An alias has the memory of its operand: one array, or one for each replica.
    SG_CHECK_VALUE(graph_.varying(node.outputs[0]) == graph_.varying(node.inputs[0]), node.op->name,
                   "an alias must differ between replicas as its operand does: got one of %",
                   node.inputs[0], " that does not.");
  }

  void check_result(NodeId n, std::size_t i, const Inferred& inferred) {
    const Node& node = graph_.nodes[n];
    const Value output = node.outputs[i];
    const std::string_view op_name = node.op->name;
    SG_CHECK_VALUE(graph_.values.contains(output), op_name, "result %", output,
                   " is not a value of the graph.");
    const ValueInfo& info = graph_.values[output];
    SG_CHECK_VALUE(info.source == Source::kNode && info.node() == n &&
                       info.result == std::int32_t(i) && !made_[output],
                   op_name, "result %", output, " is said to come from elsewhere.");
    ValueType expected = inferred.types[i];
    // Re-running a rule that makes a symbol makes another one.
    expected.batch.symbol = info.type.batch.symbol;
    SG_CHECK_VALUE(expected == info.type, op_name, "result %", output, " should be ",
                   to_string(expected), " but is ", to_string(info.type), ".");
    // The other way round is only careful: a pass may have found the operand to be equal.
    const Placement placement = placement_of(graph_, node, inferred, i);
    SG_CHECK_VALUE(graph_.varying(output) || placement == Placement::kReplicated, op_name,
                   "result %", output, " may differ between replicas, but is said to be equal.");
    made_[output] = true;
  }

  void check_writes() const {
    const IndexedVector<SlotId, std::vector<Value>> reads = reads_of_variables();
    std::set<SlotId> written;
    for (const StateWrite& write : graph_.writes) {
      SG_CHECK_VALUE(graph_.variables.contains(write.variable), "graph",
                     "a write has no variable.");
      const VariableSlot& slot = graph_.variables[write.variable];
      check_made(write.value, slot.name, "assigned value");
      SG_CHECK_VALUE(written.insert(write.variable).second, slot.name, "is written twice.");
      SG_CHECK_VALUE(slot.components > 1 || !graph_.varying(write.value), slot.name,
                     "is equal on all replicas and is assigned %", write.value,
                     ", which may differ.");
      // A variable's type is known where the graph reads the variable as well.
      for (Value read : reads[write.variable]) check_assigned(write.value, read, slot.name);
    }
  }

  IndexedVector<SlotId, std::vector<Value>> reads_of_variables() const {
    IndexedVector<SlotId, std::vector<Value>> reads(graph_.variables.size());
    for (Value v : graph_.values.ids()) {
      const ValueInfo& info = graph_.values[v];
      if (info.source == Source::kVariable) reads[info.slot()].push_back(v);
    }
    return reads;
  }

  void check_assigned(Value value, Value read, const std::string& name) const {
    const ValueType &type = graph_.type(value), &variable = graph_.type(read);
    SG_CHECK_VALUE(variable.dtype == type.dtype && variable.shape == type.shape, name,
                   "is a variable of ", to_string(variable), " and is assigned ", to_string(type),
                   ".");
  }

  const Graph& graph_;
  Symbols symbols_;
  PerValue<bool> made_;
};

}  // namespace

void verify(const Graph& graph) {
  GraphVerifier(graph).run();
}

}  // namespace samegrad
