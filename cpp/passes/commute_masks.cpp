// relu'(r) · unpool(ct) = unpool(relu'(p) · ct) where p pools r: at the element a window chose, r
// is p, and everywhere else both sides are zero. The mask moves to the small side, and r is not
// needed in the backward pass any more.
#include <algorithm>

#include "ops/attributes.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

bool is_zero(const Graph& graph, Value value) {
  const ValueInfo& info = graph.values[value];
  if (info.source == Source::kConstant) {
    const Array& array = graph.constants[info.constant()];
    return array.size() == 1 && element(array, 0) == 0;
  }
  const Node* node = graph.producer(value);
  return is_op<"full_like">(node) && node->attrs.as<FullAttrs>().value.as<double>() == 0;
}

struct Match {
  const Node* grad = nullptr;  // max_pool2d_grad
  const Node* mask = nullptr;  // greater(r, 0)
  const Node* pool = nullptr;  // max_pool2d(r)
};

// select(greater(r, 0), max_pool2d_grad(ct, index), 0) with index from max_pool2d(r)
Match match(const Graph& graph, const Node& node) {
  if (!is_op<"select">(node) || !is_zero(graph, node.inputs[2])) return {};
  const Node* mask = graph.producer(node.inputs[0]);
  const Node* grad = graph.producer(node.inputs[1]);
  if (!is_op<"greater">(mask) || !is_op<"max_pool2d_grad">(grad)) return {};
  if (!is_zero(graph, mask->inputs[1])) return {};
  const Node* pool = graph.producer(grad->inputs[1]);
  if (!is_op<"max_pool2d">(pool) || pool->inputs[0] != mask->inputs[0]) return {};
  return {grad, mask, pool};
}

}  // namespace

Graph commute_masks(Graph graph) {
  const auto sinks = [&](const Node& node) { return match(graph, node).grad != nullptr; };
  if (std::ranges::none_of(graph.nodes, sinks)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    const Match found = match(graph, node);
    if (!found.grad) {
      rewrite.copy(node);
      continue;
    }
    Builder& b = rewrite.builder();
    const Value ct = rewrite(found.grad->inputs[0]);
    const Value pooled = rewrite(found.pool->outputs[0]);
    const Value zero = b.number(b.type(ct).dtype, 0);
    const Value mask = b("greater", {pooled, zero});
    const Value masked = b("select", {mask, ct, zero});
    const Value result = b("max_pool2d_grad",
                           {masked, rewrite(found.grad->inputs[1]), rewrite(found.grad->inputs[2])},
                           found.grad->attrs);
    rewrite.replace(node.outputs[0], result);
  }
  return rewrite.finish();
}

}  // namespace samegrad
