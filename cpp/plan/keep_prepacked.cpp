// Operands that are the same in all iterations of a loop are prepared in the first one.
#include "ir/op_def.h"
#include "plan/schedule.h"

namespace samegrad {
namespace {

bool is_pure(const Node& node) {
  constexpr std::uint32_t kOther =
      kSideEffect | kRandomOp | kCollective | kReplicaDependent | kControl;
  return !node.op->has(Trait(kOther));
}

// The values that are equal in each iteration: constants, captured values, and those computed from
// them alone.
PerValue<bool> values_of_all_iterations(const Graph& body, std::size_t first_operand) {
  PerValue<bool> same(body.values.size(), false);
  for (Value v : body.values.ids()) {
    const ValueInfo& info = body.values[v];
    same[v] = info.source == Source::kConstant ||
              (info.source == Source::kArgument && info.argument() >= first_operand);
  }
  for (const Node& node : body.nodes) {
    bool all = is_pure(node);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) all = all && same[node.inputs[k]];
    for (Value output : node.outputs) same[output] = all;
  }
  return same;
}

// True if a product outside of loops over examples has a packed form of its own.
bool can_be_prepacked(const Graph& graph, const Node& node) {
  if (!node.op->prepacking || node.locality == Locality::kBatchReduction) return false;
  const ValueType& operand = graph.type(node.inputs[std::size_t(node.op->prepacking.operand)]);
  for (Value input : node.inputs) {
    if (graph.type(input).shape.symbolic()) return false;
  }
  return !operand.batched();
}

}  // namespace

void keep_prepacked(PlanDraft& body, std::size_t first_operand) {
  const Graph& graph = body.graph;
  const PerValue<bool> same = values_of_all_iterations(graph, first_operand);
  for (PlanStep& step : body.steps) {
    for (Prepacked& prepacked : step.base().prepack) prepacked.kept = same[prepacked.operand];
    if (!step.is<NodeStep>() && !step.is<GroupedGemmStep>()) continue;
    const NodeId n = step.nodes()[0];
    const Node& node = graph.nodes[n];
    if (!can_be_prepacked(graph, node)) continue;
    const Value operand = node.inputs[std::size_t(node.op->prepacking.operand)];
    if (!same[operand]) continue;
    body.prepacked_slot[n] = body.prepacked_slots;
    step.base().prepack.push_back({n, operand, body.prepacked_slots++, true});
  }
}

}  // namespace samegrad
