#include "passes/loop_costs.h"

#include <algorithm>
#include <vector>

#include "base/thresholds.h"
#include "ir/op_def.h"

namespace samegrad {
namespace {

// Bytes of an example that a node outside of a loop reads and writes in memory.
std::int64_t row_bytes(const Graph& graph, const Node& node) {
  std::int64_t bytes = 0;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (std::size_t k = 0; k < values->size(); ++k) {
      const bool moves = values == &node.outputs || node.op->reads(k);
      const ValueType& type = graph.type((*values)[k]);
      if (moves && type.batched()) bytes += example_bytes(type);
    }
  }
  return bytes;
}

bool pays_to_cut(const Graph& graph, const Node& node, std::int64_t weights) {
  if (weights < thresholds().cut_weight_bytes) return false;
  return weights > row_bytes(graph, node) * thresholds().loop_tile_examples;
}

bool can_be_grouped(const Graph& graph, const Node& node) {
  if (node.locality != Locality::kPerExample) return false;
  if (!node.op->grouped || !node.op->grouped.allows(node.attrs)) return false;
  const Value weights = node.inputs[std::size_t(node.op->prepacking.operand)];
  return graph.type(weights).shape.rank() == 2 && !graph.type(weights).batched() &&
         !graph.varying(weights) && graph.type(node.inputs[0]).batched();
}

}  // namespace

std::int64_t weight_bytes(const Graph& graph, const Node& node) {
  if (!node.op->prepacking) return 0;
  const ValueType& type = graph.type(node.inputs[std::size_t(node.op->prepacking.operand)]);
  return type.batched() ? 0 : example_bytes(type);
}

PerNode<bool> products_to_group(const Graph& graph, const PerNode<bool>& in_loop) {
  struct Product {
    NodeId node;
    std::int64_t weights;
  };
  std::vector<Product> products;
  std::int64_t streamed = streamed_weights(graph, in_loop);
  for (NodeId n : graph.nodes.ids()) {
    const std::int64_t weights = in_loop[n] ? weight_bytes(graph, graph.nodes[n]) : 0;
    if (weights > 0 && can_be_grouped(graph, graph.nodes[n])) products.push_back({n, weights});
  }
  std::ranges::stable_sort(products, std::ranges::greater(), &Product::weights);
  PerNode<bool> cut(graph.nodes.size(), false);
  for (const Product& product : products) {
    if (streamed <= thresholds().loop_weight_bytes) break;
    if (!pays_to_cut(graph, graph.nodes[product.node], product.weights)) continue;
    cut[product.node] = true;
    streamed -= product.weights;
  }
  return cut;
}

bool is_cheaper_after_loop(const Graph& graph, const Node& node) {
  const std::int64_t bytes = example_bytes(graph.type(node.outputs[0]));
  if (bytes <= thresholds().deferred_bytes) return false;
  return node.op->has(kScatters) || bytes > row_bytes(graph, node) * thresholds().deferred_examples;
}

std::int64_t streamed_weights(const Graph& graph, const PerNode<bool>& in_loop) {
  std::int64_t bytes = 0;
  for (NodeId n : graph.nodes.ids()) {
    if (in_loop[n]) bytes += weight_bytes(graph, graph.nodes[n]);
  }
  return bytes;
}

}  // namespace samegrad
