// Programs that run once more for their values only.
#include "ir/regions.h"
#include "ops/gradient_rule.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

std::vector<bool> needed_nodes(const Graph& graph) {
  std::vector<bool> wanted(graph.values.size(), false), needed(graph.nodes.size(), false);
  for (Value output : graph.outputs) wanted[std::size_t(output)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    for (Value output : node.outputs) needed[i] = needed[i] || wanted[std::size_t(output)];
    const auto* rule = node.attrs.get_if<GradientRuleAttrs>();
    for (std::int64_t r = 0; rule && r < rule->results; ++r) {
      needed[i] = needed[i] || wanted[std::size_t(node.inputs[std::size_t(r)])];
    }
    if (!needed[i]) continue;
    for (Value input : graph.nodes[i].inputs) wanted[std::size_t(input)] = true;
  }
  return needed;
}

}  // namespace

Node without_effects(const Node& node) {
  Node pure = node;
  if (holds(node, kSideEffect)) {
    change_regions(pure, [](Graph& region) { region = without_effects(region); });
  }
  return pure;
}

Graph without_effects(const Graph& graph) {
  const std::vector<bool> needed = needed_nodes(graph);
  Rewriter rewrite(graph);
  std::vector<std::int32_t> place = {0};  // of each node, and the end
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) rewrite.copy(without_effects(graph.nodes[i]));
    place.push_back(std::int32_t(rewrite.to().nodes.size()));
  }
  Graph& pure = rewrite.to();
  pure.outputs = rewrite(graph.outputs);
  for (CallRange call : graph.calls) {
    call.begin = place[std::size_t(call.begin)];
    call.end = place[std::size_t(call.end)];
    pure.calls.push_back(call);
  }
  for (const StateWrite& read : graph.rereads) {
    const Value value = rewrite(read.value);
    if (value != kNoValue) pure.rereads.push_back({read.variable, value});
  }
  return std::move(pure);
}

}  // namespace samegrad
