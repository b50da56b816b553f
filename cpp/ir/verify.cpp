#include "base/error.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace samegrad {

void verify(const Graph& graph) {
  std::vector<Symbol> symbols = graph.symbols;
  std::vector<bool> made(graph.values.size(), false);
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    made[i] = graph.values[i].source != Source::kNode;
  }
  for (const Node& node : graph.nodes) {
    std::vector<ValueType> types;
    for (Value input : node.inputs) {
      check_value(made[std::size_t(input)], node.op->name, "operand %", input,
                  " is used before it is made.");
      types.push_back(graph.type(input));
    }
    const Inferred inferred = node.op->infer({*node.op, types, node.attrs, symbols});
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      ValueType expected = inferred.types[i];
      const ValueType& actual = graph.type(node.outputs[i]);
      // Re-running a rule that makes a symbol makes another one.
      expected.batch.symbol = actual.batch.symbol;
      check_value(expected == actual, node.op->name, "result %", node.outputs[i], " should be ",
                  to_string(expected), " but is ", to_string(actual), ".");
      made[std::size_t(node.outputs[i])] = true;
    }
  }
}

}  // namespace samegrad
