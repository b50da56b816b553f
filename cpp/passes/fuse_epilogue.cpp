// Convolution or matmul + bias (+ relu) as one node: the product's epilogue adds the bias and takes
// the maximum while the result is in registers.
#include <map>
#include <optional>
#include <set>

#include "passes/passes.h"
#include "passes/pattern.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

// A product, the addition that reads it, and the relu that reads the sum.
struct EpilogueMatch {
  const Node *product = nullptr, *add = nullptr, *relu = nullptr;  // relu may be null
  Value bias;
};

const OpDef* fused_op(const Node& node) {
  // A contraction over the examples has no result before its tree is done.
  if (node.op->with_bias.empty() || node.locality == Locality::kBatchReduction) return nullptr;
  const OpDef* op = &OpRegistry::instance().get(node.op->with_bias);
  return AttrDraft(op->name, op->attrs).take(node.attrs) ? op : nullptr;
}

bool is_bias(const Graph& graph, Value bias, Value product) {
  const ValueType& type = graph.type(bias);
  const Shape& shape = graph.type(product).shape;
  return type.shape.rank() == 1 && !type.batched() && shape.rank() >= 2 &&
         type.shape[0] == shape[shape.rank() - 1] && type.dtype == graph.type(product).dtype;
}

std::optional<EpilogueMatch> match(const Graph& graph, const PerValue<int>& uses, Value value) {
  using namespace pattern;  // NOLINT(google-build-using-namespace)
  EpilogueMatch found;
  const auto product = once(uses, node(fused_op).as(found.product));
  const auto bias = where(any(found.bias), [&](const Graph&, Value bias) {
    return !graph.producer(bias) && is_bias(graph, bias, found.product->outputs[0]);
  });
  const auto biased = commuted<"add">(product, bias).as(found.add);
  const auto activated = op<"relu">(once(uses, biased)).as(found.relu);
  if (!matches(graph, value, either(activated, biased))) return {};
  return found;
}

// Epilogues by the product that takes them; the longer one wins.
std::map<const Node*, EpilogueMatch> find_epilogues(const Graph& graph) {
  const PerValue<int> uses = count_uses(graph);
  std::map<const Node*, EpilogueMatch> found;
  for (const Node& node : graph.nodes) {
    for (Value output : node.outputs) {
      if (const auto epilogue = match(graph, uses, output)) {
        found.insert_or_assign(epilogue->product, *epilogue);
      }
    }
  }
  return found;
}

Value build(Rewriter& rewrite, const EpilogueMatch& epilogue) {
  const Node& product = *epilogue.product;
  const OpDef& op = *fused_op(product);
  AttrDraft attrs(op.name, op.attrs);
  attrs.take(product.attrs);
  if (epilogue.relu) attrs.set("activation", std::string("relu"));
  const Value inputs[] = {rewrite(product.inputs[0]), rewrite(product.inputs[1]),
                          rewrite(epilogue.bias)};
  return rewrite.builder().apply(op, inputs, attrs.finish())[0];
}

}  // namespace

Graph fuse_epilogue(Graph graph) {
  const std::map<const Node*, EpilogueMatch> epilogues = find_epilogues(graph);
  if (epilogues.empty()) return graph;
  std::set<const Node*> taken;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    if (taken.contains(&node)) continue;
    const auto at = epilogues.find(&node);
    if (at == epilogues.end()) {
      rewrite.copy(node);
      continue;
    }
    const Value result = build(rewrite, at->second);
    for (const Node* part : {at->second.add, at->second.relu}) {
      if (!part) continue;
      taken.insert(part);
      rewrite.replace(part->outputs[0], result);
    }
  }
  return rewrite.finish();
}

}  // namespace samegrad
