#include "train/partial_evaluator.h"

#include <algorithm>

#include "base/error.h"
#include "passes/rewrite.h"
#include "train/compiled_function.h"
#include "train/random_state.h"

namespace samegrad {
namespace {

using Evaluated = std::map<Value, PerReplica<Array>>;

// Numbers of the steps that compute initial values: they draw what no other step does.
constexpr std::uint64_t kOfVariables = std::uint64_t(1) << 62;

PerNode<bool> needed_nodes(const Graph& graph, const Values& outputs, const Evaluated& known) {
  PerValue<bool> wanted(graph.values.size(), false);
  PerNode<bool> needed(graph.nodes.size(), false);
  for (Value output : outputs) wanted[output] = true;
  for (NodeId i : graph.nodes.ids().reversed()) {
    for (Value output : graph.nodes[i].outputs) {
      if (wanted[output] && !known.count(output)) needed[i] = true;
    }
    if (!needed[i]) continue;
    for (Value input : graph.nodes[i].inputs) wanted[input] = true;
  }
  return needed;
}

// Bodies show nothing: what is looked at now is shown when the step runs.
void copy_needed(Rewriter& rewrite, const PerNode<bool>& needed) {
  for (NodeId i : needed.ids()) {
    if (needed[i]) rewrite.copy(without_effects(rewrite.from().nodes[i]));
  }
}

bool reads_arguments(const Graph& graph) {
  const auto is_argument = [&](Value value) {
    return graph.values[value].source == Source::kArgument;
  };
  return std::ranges::any_of(graph.outputs, is_argument) ||
         std::ranges::any_of(graph.nodes, [&](const Node& node) {
           return std::ranges::any_of(node.inputs, is_argument);
         });
}

}  // namespace

void PartialEvaluator::stop() {
  arguments_.reset();
  evaluated_.clear();
}

Graph PartialEvaluator::program_for(Value value, std::vector<PerReplica<Array>>& arguments) const {
  Rewriter rewrite(graph_);
  Evaluated usable;
  for (const auto& [known, arrays] : evaluated_) {
    if (graph_.values[known].source != Source::kNode) continue;
    // The reduction order of a part's all-reduce depends on the nodes that compute the part.
    if (graph_.placement(known) == Placement::kPartial) continue;
    usable[known] = arrays;
    arguments.push_back(arrays);
    rewrite.replace(known, rewrite.to().add_argument(graph_.type(known), graph_.placement(known)));
  }
  copy_needed(rewrite, needed_nodes(graph_, {value}, usable));
  rewrite.to().outputs = {rewrite(value)};
  return std::move(rewrite.to());
}

PerReplica<Array> PartialEvaluator::evaluate(Value value) {
  SG_CHECK_VALUE(
      graph_.symbols.replicas.empty(), "Tensor",
      "values cannot be looked at where the replicas' numbers of examples differ and Python "
      "needs one (",
      function_.split_at,
      "), as the function is traced for each number; give all "
      "replicas equally many examples, or run functions compiled.");
  const ValueInfo& info = graph_.values[value];
  if (info.source == Source::kArgument) return (*arguments_)[info.argument()];
  const auto known = evaluated_.find(value);
  if (known != evaluated_.end()) return known->second;
  std::vector<PerReplica<Array>> arguments = *arguments_;
  Graph program = program_for(value, arguments);
  PerReplica<Array> arrays;
  // Not cached as a step: user code may evaluate many values, and each step has memory of its own.
  function_.host.run_unlocked([&] {
    CompiledFunction step({std::move(program), slots_.cells()}, PlanOptions());
    arrays = step.evaluate(arguments)[0];
  });
  return evaluated_[value] = std::move(arrays);
}

Array PartialEvaluator::initial_value(Value value, std::vector<PerReplica<Array>> arguments,
                                      bool given) const {
  Graph program = program_for(value, arguments);
  const char* const unknown =
      given ? "whose numbers of examples differ between the replicas where Python needs them"
            : "of which only the signature is known";
  SG_CHECK_VALUE(
      (given && graph_.symbols.replicas.empty()) || !reads_arguments(program), "Variable",
      "an initial value is computed once, when a function is traced: got one that depends "
      "on arguments ",
      unknown, "; create the variable outside of the function, or call the function first.");
  program.symbols.replicas.clear();
  PerReplica<Array> arrays;
  function_.host.run_unlocked([&] {
    CompiledFunction step({std::move(program), slots_.cells(), function_.processes}, PlanOptions());
    const bool draws = step.plan().has_random;
    arrays = step.repeat(arguments, false, draws ? kOfVariables + random_state().created++ : 0)[0];
  });
  return arrays[0];
}

}  // namespace samegrad
