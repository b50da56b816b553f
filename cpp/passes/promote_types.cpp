// Elements that nothing is computed in become those of their sums' type, operation by operation.
#include <algorithm>

#include "ir/regions.h"
#include "ops/attributes.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

bool has_storage_dtypes(const Graph& graph) {
  return std::ranges::any_of(
             graph.values,
             [](const ValueInfo& info) { return is_storage_dtype(info.type.dtype); }) ||
         std::ranges::any_of(graph.nodes, [](const Node& node) {
           return std::ranges::any_of(
               node.regions, [](const GraphPtr& region) { return has_storage_dtypes(*region); });
         });
}

class TypePromotion {
 public:
  explicit TypePromotion(const Graph& graph) : rewrite_(graph) {}

  Graph run() {
    for (const Node& node : rewrite_.from().nodes) {
      if (!node.regions.empty()) {
        Node fresh = node;
        change_regions(fresh, [](Graph& region) { region = promote_types(std::move(region)); });
        rewrite_.copy(fresh);
      } else if (computes(*node.op)) {
        copy(node);
      } else {
        rewrite_.copy(node);
      }
    }
    return rewrite_.finish();
  }

 private:
  // The value itself if it has the dtype.
  Value cast(Value value, DType to, const Node& of) {
    if (rewrite_.to().type(value).dtype == to) return value;
    const Value made = rewrite_.builder()("cast", {value}, CastAttrs{to});
    Node& node = rewrite_.to().nodes.back();
    node.location = of.location;
    node.derivative = of.derivative;
    return made;
  }

  void copy(const Node& node) {
    Graph& to = rewrite_.to();
    Node fresh = node;
    fresh.inputs = rewrite_(node.inputs);
    for (Value& input : fresh.inputs) input = cast(input, sum_type(to.type(input).dtype), node);
    fresh.outputs.clear();
    for (const Value output : node.outputs) {
      ValueInfo info = rewrite_.from().values[output];
      info.type.dtype = sum_type(info.type.dtype);
      info.index = to.nodes.next_id().number();
      fresh.outputs.push_back(to.values.push_back(info));
    }
    const Values made = fresh.outputs;
    to.nodes.push_back(std::move(fresh));
    for (std::size_t i = 0; i < made.size(); ++i) {
      const Value output = node.outputs[i];
      rewrite_.replace(output, cast(made[i], rewrite_.from().type(output).dtype, node));
    }
  }

  Rewriter rewrite_;
};

}  // namespace

Graph promote_types(Graph graph) {
  if (!has_storage_dtypes(graph)) return graph;
  return TypePromotion(graph).run();
}

}  // namespace samegrad
