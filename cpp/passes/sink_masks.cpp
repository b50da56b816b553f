// relu'(r) · unpool(ct) = unpool(relu'(p) · ct) where p pools r: at the element a window chose, r
// is p, and everywhere else both sides are zero. The mask moves to the small side, and r is not
// needed in the backward pass any more.
#include <algorithm>
#include <optional>

#include "passes/passes.h"
#include "passes/pattern.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

struct Match {
  const Node* grad = nullptr;  // max_pool2d_grad
  const Node* pool = nullptr;  // max_pool2d(r)
};

// select(greater(r, 0), max_pool2d_grad(ct, index), 0) with index from max_pool2d(r)
std::optional<Match> match(const Graph& graph, const Node& node) {
  using namespace pattern;  // NOLINT(google-build-using-namespace)
  Match found;
  Value r;
  const auto pooled = op<"max_pool2d">(same(r)).as(found.pool);
  const auto masked = op<"select">(op<"greater">(any(r), number(0)),
                                   op<"max_pool2d_grad">(any(), pooled).as(found.grad), number(0));
  if (node.outputs.empty() || !matches(graph, node.outputs[0], masked)) return {};
  return found;
}

}  // namespace

Graph sink_masks(Graph graph) {
  const auto sinks = [&](const Node& node) { return match(graph, node).has_value(); };
  if (std::ranges::none_of(graph.nodes, sinks)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    const auto found = match(graph, node);
    if (!found) {
      rewrite.copy(node);
      continue;
    }
    Builder& b = rewrite.builder();
    const Value ct = rewrite(found->grad->inputs[0]);
    const Value pooled = rewrite(found->pool->outputs[0]);
    const Value zero = b.number(b.type(ct).dtype, 0);
    const Value mask = b("greater", {pooled, zero});
    const Value masked = b("select", {mask, ct, zero});
    const Value result =
        b("max_pool2d_grad",
          {masked, rewrite(found->grad->inputs[1]), rewrite(found->grad->inputs[2])},
          found->grad->attrs);
    rewrite.replace(node.outputs[0], result);
  }
  return rewrite.finish();
}

}  // namespace samegrad
