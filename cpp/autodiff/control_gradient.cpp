#include "autodiff/control_gradient.h"

#include "autodiff/gradient.h"
#include "base/error.h"
#include "ir/placement.h"

namespace samegrad {
namespace {

using GraphPtr = std::shared_ptr<const Graph>;

Values arguments_of(const Graph& graph) {
  Values values(graph.arguments.size());
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ValueInfo& info = graph.values[v];
    if (info.source == Source::kArgument) values[std::size_t(info.index)] = Value(v);
  }
  return values;
}

Value zeros_like(Builder& b, Value value) {
  return b("full_like", {value}, {{"value", 0.0}});
}

// Gradients of Σ targets · seeds for the sources inside a graph; zeros where nothing flows.
Values dense_gradient(Builder& b, const Values& targets, const Values& seeds,
                      const Values& sources) {
  Values gradients = gradient(b, targets, seeds, sources, [](std::int32_t) { return true; });
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (gradients[i] == kNoValue) gradients[i] = zeros_like(b, sources[i]);
  }
  return gradients;
}

Values pick(const Values& from, const std::vector<std::size_t>& places) {
  Values picked;
  for (std::size_t place : places) picked.push_back(from[place]);
  return picked;
}

// A branch of operands and cotangents to gradients of the operands `sources`.
GraphPtr branch_gradient(const Graph& branch, const std::vector<std::size_t>& targets,
                         const std::vector<Placement>& placements,
                         const std::vector<std::size_t>& sources) {
  auto graph = std::make_shared<Graph>(branch);
  const Values outputs = pick(branch.outputs, targets);
  Values seeds;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    seeds.push_back(graph->add_argument(branch.type(outputs[i]), placements[i]));
  }
  Builder b(*graph);
  graph->outputs = dense_gradient(b, outputs, seeds, pick(arguments_of(branch), sources));
  return graph;
}

Values cond_gradient(const Node& node, const VjpArgs& args, const std::vector<bool>& wanted) {
  std::vector<std::size_t> targets, sources;
  std::vector<Placement> placements;
  Values inputs = node.inputs;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (args.ct[i] == kNoValue) continue;
    targets.push_back(i);
    placements.push_back(args.b.graph().placement(args.ct[i]));
    inputs.push_back(args.ct[i]);
  }
  // The condition comes first and is no operand of the branches.
  for (std::size_t k = 1; k < wanted.size(); ++k) {
    if (wanted[k]) sources.push_back(k - 1);
  }
  Values result(node.inputs.size(), kNoValue);
  if (sources.empty()) return result;
  const Values gradients = args.b.apply(
      *node.op, inputs,
      {{"true_branch",
        branch_gradient(node.attrs.graph("true_branch"), targets, placements, sources)},
       {"false_branch",
        branch_gradient(node.attrs.graph("false_branch"), targets, placements, sources)},
       {"varying", node.attrs.flag("varying")}});
  for (std::size_t i = 0; i < sources.size(); ++i) result[sources[i] + 1] = gradients[i];
  return result;
}

// One round backwards. Arguments: the loop's variables and operands, the cotangents of the
// differentiated variables, the sums so far of the wanted operands' gradients. Results: the last
// two after the round. A cotangent or sum that starts equal on all replicas may differ after a
// round: `placements` grow until they fit.
GraphPtr round_gradient(const Graph& body, const std::vector<std::size_t>& variables,
                        const std::vector<std::size_t>& operands,
                        std::vector<Placement>& placements) {
  while (true) {
    auto graph = std::make_shared<Graph>(body);
    const Values arguments = arguments_of(body);
    std::vector<std::size_t> places = variables;
    places.insert(places.end(), operands.begin(), operands.end());
    const Values sources = pick(arguments, places);
    Values given;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      given.push_back(graph->add_argument(body.type(sources[i]), placements[i]));
    }
    Builder b(*graph);
    const Values seeds(given.begin(), given.begin() + std::ptrdiff_t(variables.size()));
    Values results = dense_gradient(b, pick(body.outputs, variables), seeds, sources);
    for (std::size_t i = variables.size(); i < results.size(); ++i) {
      results[i] = b("add", {given[i], results[i]});
    }
    graph->outputs = results;
    bool fits = true;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Placement either = joined(placements[i], graph->placement(results[i]));
      fits = fits && either == placements[i];
      placements[i] = either;
    }
    if (fits) return graph;
  }
}

Values while_gradient(const Node& node, const VjpArgs& args, const std::vector<bool>& wanted) {
  Builder& b = args.b;
  const Graph& body = node.attrs.graph("body");
  const auto count = std::size_t(node.attrs.integer("variables"));
  std::vector<std::size_t> variables, operands;
  Values inputs = {node.outputs.back()};
  std::vector<Placement> placements;
  const auto start = [&](Value value) {
    placements.push_back(node.attrs.flag("varying") ? Placement::kOwn : b.graph().placement(value));
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_floating(b.type(node.outputs[i]).dtype)) continue;
    variables.push_back(i);
    inputs.push_back(args.ct[i] == kNoValue ? zeros_like(b, node.outputs[i]) : args.ct[i]);
    start(inputs.back());
  }
  for (std::size_t k = count; k < node.inputs.size(); ++k) {
    if (!wanted[k]) continue;
    operands.push_back(k);
    inputs.push_back(zeros_like(b, node.inputs[k]));
    start(inputs.back());
  }
  inputs.insert(inputs.end(), node.inputs.begin() + std::ptrdiff_t(count), node.inputs.end());
  GraphPtr round = round_gradient(body, variables, operands, placements);
  const Values gradients =
      b.apply(OpRegistry::instance().get("while_loop_grad"), inputs,
              {{"body", std::move(round)}, {"varying", node.attrs.flag("varying")}});
  Values result(node.inputs.size(), kNoValue);
  for (std::size_t i = 0; i < variables.size(); ++i) result[variables[i]] = gradients[i];
  for (std::size_t i = 0; i < operands.size(); ++i) {
    result[operands[i]] = gradients[variables.size() + i];
  }
  return result;
}

}  // namespace

Values control_gradient(const Node& node, const VjpArgs& args, const std::vector<bool>& wanted) {
  if (node.attrs.find("true_branch")) return cond_gradient(node, args, wanted);
  if (node.attrs.find("condition")) return while_gradient(node, args, wanted);
  fail(ErrorKind::kNotImplemented, "while_loop",
       "has no second derivative: where the number of rounds is known, write a Python loop, which "
       "is "
       "unrolled.");
}

}  // namespace samegrad
