// Convolution or matmul + bias (+ relu) as one node: the product's epilogue adds the bias and takes
// the maximum while the result is in registers.
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

struct EpilogueNodes {
  NodeId add, relu;  // nodes taken in
  Value bias = kNoValue;
};

const OpDef* fused_op(const Node& node) {
  // A contraction over the examples has no result before its tree is done.
  if (node.op->with_bias.empty() || node.locality == Locality::kTree) return nullptr;
  const OpDef* op = &OpRegistry::instance().get(node.op->with_bias);
  return AttrDraft(op->name, op->attrs).take(node.attrs) ? op : nullptr;
}

bool is_bias(const Graph& graph, Value bias, Value product) {
  const ValueType& type = graph.type(bias);
  const Shape& shape = graph.type(product).shape;
  return type.shape.rank() == 1 && !type.batched() && shape.rank() >= 2 &&
         type.shape[0] == shape[shape.rank() - 1] && type.dtype == graph.type(product).dtype;
}

// The only reader of a value, or -1.
PerValue<NodeId> only_readers(const Graph& graph) {
  const PerValue<int> uses = count_uses(graph);
  PerValue<NodeId> reader(graph.values.size());
  for (NodeId n : graph.nodes.ids()) {
    for (Value input : graph.nodes[n].inputs) {
      if (uses[input] == 1) reader[input] = n;
    }
  }
  return reader;
}

EpilogueNodes find(const Graph& graph, const PerValue<NodeId>& reader, const Node& node) {
  EpilogueNodes fusion;
  const Value product = node.outputs[0];
  fusion.add = reader[product];
  if (!fusion.add.exists()) return {};
  const Node& add = graph.nodes[fusion.add];
  if (!is_op<"add">(add)) return {};
  fusion.bias = add.inputs[0] == product ? add.inputs[1] : add.inputs[0];
  const bool made = graph.values[fusion.bias].source == Source::kNode;
  if (made || !is_bias(graph, fusion.bias, product)) return {};
  fusion.relu = reader[add.outputs[0]];
  if (fusion.relu.exists() && !is_op<"relu">(graph.nodes[fusion.relu])) fusion.relu = kNoNode;
  return fusion;
}

Value build(Rewriter& rewrite, const Node& node, const EpilogueNodes& fusion) {
  const OpDef& op = *fused_op(node);
  AttrDraft attrs(op.name, op.attrs);
  attrs.take(node.attrs);
  if (fusion.relu.exists()) attrs.set("activation", std::string("relu"));
  const Value inputs[] = {rewrite(node.inputs[0]), rewrite(node.inputs[1]), rewrite(fusion.bias)};
  return rewrite.builder().apply(op, inputs, attrs.finish())[0];
}

}  // namespace

Graph fuse_epilogue(Graph graph) {
  const PerValue<NodeId> reader = only_readers(graph);
  PerNode<bool> taken(graph.nodes.size(), false);
  Rewriter rewrite(graph);
  for (NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    if (taken[n]) continue;
    const EpilogueNodes fusion = fused_op(node) ? find(graph, reader, node) : EpilogueNodes{};
    if (!fusion.add.exists()) {
      rewrite.copy(node);
      continue;
    }
    const Value result = build(rewrite, node, fusion);
    taken[fusion.add] = true;
    rewrite.replace(graph.nodes[fusion.add].outputs[0], result);
    if (!fusion.relu.exists()) continue;
    taken[fusion.relu] = true;
    rewrite.replace(graph.nodes[fusion.relu].outputs[0], result);
  }
  return rewrite.finish();
}

}  // namespace samegrad
