// Looking at a value while its program is traced: the part that makes it, as a program of its own.
#include <algorithm>

#include "base/error.h"
#include "passes/rewrite.h"
#include "train/random_state.h"
#include "train/step.h"
#include "train/trace.h"

namespace samegrad {
namespace {

using Known = std::map<Value, PerReplica<Array>>;

// Numbers of the steps that compute initial values: they draw what no other step does.
constexpr std::uint64_t kOfVariables = std::uint64_t(1) << 62;

PerNode<bool> needed_nodes(const Graph& graph, const Values& outputs, const Known& known) {
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

bool Trace::evaluates() const {
  return outer_ ? outer_->evaluates() : actual_.has_value() && !finished_;
}

Graph Trace::part_for(Value value, std::vector<PerReplica<Array>>& arguments) const {
  Rewriter rewrite(graph_);
  Known usable;
  for (const auto& [known, arrays] : looked_) {
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

PerReplica<Array> Trace::evaluate(Value value, bool anywhere) {
  const std::shared_ptr<Trace> current = current_trace();
  if (outer_ || (!anywhere && current && current->outer_)) {
    fail(ErrorKind::kType, "Tensor",
         "a branch or loop runs with the whole step, perhaps not at all or many times, so there is "
         "no value while Python describes it: look at what comes out of it, show values with "
         "samegrad.print, or let Python decide (samegrad.function(autograph=False)).");
  }
  check_value(
      graph_.symbols.replicas.empty(), "Tensor",
      "values cannot be looked at where the replicas' numbers of examples differ and Python "
      "needs one (",
      split_at_,
      "), as the function is traced for each number; give all "
      "replicas equally many examples, or run functions compiled.");
  const ValueInfo& info = graph_.values[value];
  if (info.source == Source::kArgument) return (*actual_)[info.argument()];
  const auto known = looked_.find(value);
  if (known != looked_.end()) return known->second;
  std::vector<PerReplica<Array>> arguments = *actual_;
  Graph program = part_for(value, arguments);
  PerReplica<Array> arrays;
  // Not cached as a step: user code may evaluate many values, and each step has memory of its own.
  const auto run = [&] {
    Step step({std::move(program), cells()}, PlanOptions());
    arrays = step.evaluate(arguments)[0];
  };
  unlocked ? unlocked(run) : run();
  return looked_[value] = std::move(arrays);
}

std::vector<std::shared_ptr<StateCell>> Trace::cells() const {
  std::vector<std::shared_ptr<StateCell>> cells;
  for (const auto& [variable, written] : touched_) cells.push_back(variable);
  return cells;
}

Array Trace::initial_value(const Tensor& tensor,
                           const std::vector<PerReplica<Array>>& given_arguments, bool given) {
  check_value(tensor.trace.get() == this && !outer_, "Variable",
              "an initial value is computed once, when a function is traced: got a value of a "
              "branch or loop, which may run never or many times; create the variable outside of "
              "it.");
  std::vector<PerReplica<Array>> arguments = given_arguments;
  Graph program = part_for(tensor.value, arguments);
  const char* const unknown =
      given ? "whose numbers of examples differ between the replicas where Python needs them"
            : "of which only the signature is known";
  check_value((given && graph_.symbols.replicas.empty()) || !reads_arguments(program), "Variable",
              "an initial value is computed once, when a function is traced: got one that depends "
              "on arguments ",
              unknown,
              "; create the variable outside of the function, or call the function first.");
  program.symbols.replicas.clear();
  PerReplica<Array> arrays;
  const auto run = [&] {
    Step step({std::move(program), cells(), processes_}, PlanOptions());
    const bool draws = step.plan().has_random;
    arrays = step.repeat(arguments, false, draws ? kOfVariables + random_state().created++ : 0)[0];
  };
  unlocked ? unlocked(run) : run();
  return arrays[0];
}

}  // namespace samegrad
