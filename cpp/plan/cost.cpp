#include "plan/cost.h"

#include <algorithm>

#include "base/thresholds.h"
#include "ir/op_def.h"

namespace samegrad {
namespace {

// The weights that a product in a loop streams, or 0.
std::int64_t weight_bytes(const Graph& graph, const Node& node) {
  if (node.op->prepared_operand < 0) return 0;
  const ValueType& type = graph.type(node.inputs[std::size_t(node.op->prepared_operand)]);
  return type.batched() ? 0 : example_bytes(type);
}

// Bytes of an example that a product outside of a loop reads and writes in memory.
std::int64_t row_bytes(const Graph& graph, const Node& node) {
  std::int64_t bytes = 0;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (Value value : *values) {
      if (graph.type(value).batched()) bytes += example_bytes(graph.type(value));
    }
  }
  return bytes;
}

bool pays(const Graph& graph, const Node& node, std::int64_t weights) {
  if (weights < thresholds().cut_weight_bytes) return false;
  return weights > row_bytes(graph, node) * thresholds().loop_tile_examples;
}

bool can_be_cut(const Graph& graph, const Node& node) {
  if (node.locality != Locality::kExample) return false;
  if (!node.op->all_rows || !node.op->is_of_rows(node.attrs)) return false;
  const Value weights = node.inputs[std::size_t(node.op->prepared_operand)];
  return graph.type(weights).shape.rank() == 2 && !graph.type(weights).batched() &&
         !graph.varying(weights) && graph.type(node.inputs[0]).batched();
}

}  // namespace

std::int64_t example_bytes(const ValueType& type) {
  return example_size(type) * std::int64_t(size_of(type.dtype));
}

std::vector<bool> products_to_cut(const Graph& graph, const std::vector<bool>& in_loop) {
  struct Product {
    std::size_t node;
    std::int64_t weights;
  };
  std::vector<Product> products;
  std::int64_t streamed = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::int64_t weights = in_loop[n] ? weight_bytes(graph, graph.nodes[n]) : 0;
    streamed += weights;
    if (weights > 0 && can_be_cut(graph, graph.nodes[n])) products.push_back({n, weights});
  }
  std::ranges::stable_sort(products, std::ranges::greater(), &Product::weights);
  std::vector<bool> cut(graph.nodes.size(), false);
  for (const Product& product : products) {
    if (streamed <= thresholds().loop_weight_bytes) break;
    if (!pays(graph, graph.nodes[product.node], product.weights)) continue;
    cut[product.node] = true;
    streamed -= product.weights;
  }
  return cut;
}

}  // namespace samegrad
