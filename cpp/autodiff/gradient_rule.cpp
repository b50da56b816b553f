#include "autodiff/gradient_rule.h"

#include "base/error.h"
#include "ops/gradient_rule.h"

namespace samegrad {
namespace {

// The nodes of a graph once more, with these values for its arguments.
Values copy_into(Builder& b, const Graph& graph, const Values& arguments) {
  PerValue<Value> map(graph.values.size(), kNoValue);
  for (Value v : graph.values.ids()) {
    const ValueInfo& info = graph.values[v];
    if (info.source == Source::kArgument) map[v] = arguments[info.argument()];
    if (info.source != Source::kConstant) continue;
    map[v] = b.graph().add_constant(graph.constants[info.constant()], info.type.batch);
    b.graph().values[map[v]].counts = info.counts;
  }
  const auto mapped = [&](const Values& values) {
    Values fresh;
    for (Value value : values) fresh.push_back(map[value]);
    return fresh;
  };
  for (const Node& node : graph.nodes) {
    const Values made = b.apply(*node.op, mapped(node.inputs), node.attrs, node.regions);
    for (std::size_t i = 0; i < made.size(); ++i) map[node.outputs[i]] = made[i];
  }
  return mapped(graph.outputs);
}

}  // namespace

std::size_t ruled_results(const Node& rule) {
  return std::size_t(rule.attrs.as<GradientRuleAttrs>().results);
}

const std::vector<std::int64_t>& ruled_operands(const Node& rule) {
  return rule.attrs.as<GradientRuleAttrs>().given;
}

Values apply_rule(Builder& b, const Node& rule, Values cts) {
  for (std::size_t i = 0; i < cts.size(); ++i) {
    if (cts[i] != kNoValue) continue;
    cts[i] = b("full_like", {rule.inputs[i]}, FullAttrs{.value = 0.0});
  }
  const auto* called = rule.attrs.get_if<CalledGradientAttrs>();
  if (called && called->callback < 0) throw Error(ErrorKind(called->kind), called->error);
  if (called) return b.called_gradient(called->callback, cts);
  const Graph& graph = *rule.regions[0];
  const std::size_t read = graph.arguments.size() - cts.size();
  cts.insert(cts.end(), rule.inputs.end() - std::ptrdiff_t(read), rule.inputs.end());
  return copy_into(b, graph, cts);
}

}  // namespace samegrad
