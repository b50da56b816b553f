#include "autodiff/control_gradient.h"

#include <algorithm>
#include <optional>

#include "autodiff/gradient.h"
#include "ir/placement.h"
#include "ops/as_type.h"
#include "ops/control.h"
#include "ops/stacked_iterations.h"

namespace samegrad {
namespace {

// x + -0.0 is x for every x, 0.0 and -0.0 too: what flows through branches and iterations has the
// bits of what flows without them.
Value zeros_like(Builder& b, Value value) {
  return b("full_like", {value}, FullAttrs{.value = -0.0});
}

// Gradients of Σ targets · seeds for the sources inside a graph, added to their sums, of the
// sources' types; zeros where nothing flows.
Values dense_gradient(Builder& b, const Values& targets, const Values& seeds, const Values& sources,
                      const Values& sums) {
  Values gradients = gradient(
      b, targets, seeds, sources, [](NodeId) { return true; }, sums);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (gradients[i] == kNoValue) gradients[i] = zeros_like(b, sources[i]);
    gradients[i] = as_type(b, gradients[i], b.type(sources[i]));
  }
  return gradients;
}

Values pick(const Values& from, const std::vector<std::size_t>& places) {
  Values picked;
  for (std::size_t place : places) picked.push_back(from[place]);
  return picked;
}

// A branch of operands, cotangents and sums (absent: none yet) to gradients of the operands
// `sources`.
GraphPtr branch_gradient(const Graph& branch, const std::vector<std::size_t>& targets,
                         const std::vector<Placement>& placements,
                         const std::vector<std::size_t>& sources,
                         const std::vector<std::optional<ValueInfo>>& sums) {
  auto graph = std::make_shared<Graph>(branch);
  const Values outputs = pick(branch.outputs, targets);
  Values seeds;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    seeds.push_back(graph->add_argument(branch.type(outputs[i]), placements[i]));
  }
  Values given;
  for (const std::optional<ValueInfo>& sum : sums) {
    given.push_back(sum ? graph->add_argument(sum->type, sum->placement) : kNoValue);
  }
  Builder b(*graph);
  graph->outputs = dense_gradient(b, outputs, seeds, pick(argument_values(branch), sources), given);
  return graph;
}

Values cond_gradient(const Node& node, const VjpArgs& args, const std::vector<bool>& wanted,
                     const Values& sums) {
  std::vector<std::size_t> targets, sources;
  std::vector<Placement> placements;
  Values inputs = node.inputs;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (args.ct[i] == kNoValue) continue;
    targets.push_back(i);
    placements.push_back(args.b.graph().placement(args.ct[i]));
    inputs.push_back(args.ct[i]);
  }
  // The condition is the first operand, and is not passed to the branches.
  std::vector<std::optional<ValueInfo>> infos;
  for (std::size_t k = 1; k < wanted.size(); ++k) {
    if (!wanted[k]) continue;
    sources.push_back(k - 1);
    infos.emplace_back();
    if (sums[k] == kNoValue) continue;
    infos.back() = args.b.graph().values[sums[k]];
    inputs.push_back(sums[k]);
  }
  Values result(node.inputs.size(), kNoValue);
  if (sources.empty()) return result;
  std::vector<GraphPtr> branches;
  for (const GraphPtr& branch : node.regions) {
    branches.push_back(branch_gradient(*branch, targets, placements, sources, infos));
  }
  const Values gradients = args.b.apply(*node.op, inputs, node.attrs, std::move(branches));
  for (std::size_t i = 0; i < sources.size(); ++i) result[sources[i] + 1] = gradients[i];
  return result;
}

// The iterations of a loop, or of its derivative of any order: a body of entries of histories,
// carried values and operands; results: the carried values, then what goes into histories.
struct Loop {
  const Node& node;
  const Graph& body = samegrad::body(node.regions);
  const ReplayAttrs* replay = node.attrs.get_if<ReplayAttrs>();  // null: the loop itself
  bool varies = node.attrs.as<ControlAttrs>().varying;
  ControlSignature at = ControlSignature(node);
};

// Returns the placements of the arrays in one iteration's entry of a history.
std::vector<Placement> entry_placements(const Graph& graph, Value history) {
  const ValueInfo& info = graph.values[history];
  SG_ASSERT(graph.producer(history), "no node of the graph makes history %", history);
  const Node& node = *graph.producer(history);
  if (is_op<"unstack_rounds">(node)) {
    std::vector<Placement> placements;
    for (Value rows : node.inputs)
      placements.push_back(entry_placement(graph.type(rows), graph.placement(rows)));
    return placements;
  }
  if (node.regions.empty()) {  // a sum of histories
    std::vector<Placement> either = entry_placements(graph, node.inputs[0]);
    const std::vector<Placement> other = entry_placements(graph, node.inputs[1]);
    for (std::size_t i = 0; i < either.size(); ++i) either[i] = joined(either[i], other[i]);
    return either;
  }
  const Loop loop{node};
  const std::size_t carried = loop.at.carried, result = std::size_t(info.result);
  const bool is_carry = result == carried;
  const std::span<const Value> entry = is_carry ? std::span(loop.body.outputs).first(carried)
                                                : loop.at.yielded(loop.body, result - carried - 1);
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    Placement placement = loop.body.placement(entry[i]);
    if (is_carry) {  // what it was before the first iteration, too
      placement = joined(placement, loop.body.arguments[loop.at.argument + i].placement);
    }
    placements.push_back(loop.varies ? Placement::kVarying : placement);
  }
  return placements;
}

std::vector<std::size_t> floating(const Graph& graph, const Values& values, std::size_t begin,
                                  std::size_t end) {
  std::vector<std::size_t> places;
  for (std::size_t i = begin; i < end; ++i) {
    if (is_floating(graph.type(values[i]).dtype)) places.push_back(i);
  }
  return places;
}

// One iteration of the derivative. Its arguments, in order: the entries of the loop's histories,
// its carry, and the cotangents of `histories` that it made (per result). Then the cotangents of
// its carry, the sums so far of the operands' gradients, and the operands.
class IterationGradient {
 public:
  IterationGradient(const Loop& loop, const VjpArgs& args, const std::vector<bool>& wanted,
                    const Values& sums)
      : loop_(loop), args_(args), sums_(sums), arguments_(argument_values(loop.body)) {
    const ControlSignature& at = loop.at;
    carried_ = floating(loop.body, arguments_, at.argument, at.outer_argument);
    for (std::size_t h = 0; h < at.operand; ++h) {
      if (!wanted[h]) continue;
      differentiated_.push_back(h);
      groups_.push_back(floating(loop.body, arguments_, at.entries[h], at.entries[h + 1]));
    }
    for (std::size_t k = at.outer_operand; k < wanted.size(); ++k) {
      if (wanted[k]) operands_.push_back(k - at.operand + at.argument);
    }
  }

  // Gradients of the node's operands.
  Values build() {
    Builder& b = args_.b;
    const std::size_t heads = loop_.at.operand, first = loop_.at.argument;
    const std::size_t carry = loop_.at.carried;
    const auto& inputs = loop_.node.inputs;
    Values histories(inputs.begin(), inputs.begin() + std::ptrdiff_t(heads)), starts;
    histories.push_back(args_.out[carry]);
    Ints entries = loop_.replay ? loop_.replay->entries : Ints(), yields;
    entries.push_back(std::int64_t(carry));
    for (std::size_t r = carry; r < args_.ct.size(); ++r) {
      if (args_.ct[r] == kNoValue) continue;
      histories.push_back(args_.ct[r]);
      given_.push_back(entry_placements(b.graph(), args_.ct[r]));
      made_.push_back(r);
      entries.push_back(std::int64_t(given_.back().size()));
    }
    for (std::size_t i : carried_) {
      const std::size_t result = i - first;
      starts.push_back(args_.ct[result] == kNoValue ? zeros_like(b, args_.out[result])
                                                    : args_.ct[result]);
      placements_.push_back(loop_.varies ? Placement::kVarying
                                         : b.graph().placement(starts.back()));
    }
    for (std::size_t place : operands_) {
      const std::size_t k = place - first + heads;
      starts.push_back(sums_[k] == kNoValue ? zeros_like(b, inputs[k]) : sums_[k]);
      placements_.push_back(loop_.varies ? Placement::kVarying
                                         : b.graph().placement(starts.back()));
    }
    for (const auto& group : groups_) yields.push_back(std::int64_t(group.size()));
    Values operands = histories;
    operands.insert(operands.end(), starts.begin(), starts.end());
    operands.insert(operands.end(), inputs.begin() + std::ptrdiff_t(heads + carry), inputs.end());
    ReplayAttrs attrs;
    attrs.variables = std::int64_t(starts.size());
    attrs.entries = std::move(entries);
    attrs.yields = std::move(yields);
    attrs.forward = loop_.replay && !loop_.replay->forward;
    attrs.varying = loop_.varies;
    return place(
        b.apply(OpRegistry::instance().get("replay"), operands, std::move(attrs), {body()}),
        starts.size());
  }

 private:
  Values place(const Values& results, std::size_t carried) const {
    const std::size_t heads = loop_.at.operand, first = loop_.at.argument;
    Values gradients(loop_.node.inputs.size(), kNoValue);
    std::size_t next = 0;
    for (std::size_t i : carried_) gradients[i - first + heads] = results[next++];
    for (std::size_t i : operands_) gradients[i - first + heads] = results[next++];
    for (std::size_t g = 0; g < differentiated_.size(); ++g) {
      gradients[differentiated_[g]] = results[carried + 1 + g];
    }
    return gradients;
  }

  // A value carried that starts equal on all replicas may differ after an iteration: traced until
  // it fits.
  GraphPtr body() {
    while (true) {
      auto graph = std::make_shared<Graph>(loop_.body);
      fill(*graph);
      bool fits = true;
      for (std::size_t i = 0; i < placements_.size(); ++i) {
        const Placement either = joined(placements_[i], graph->placement(graph->outputs[i]));
        fits = fits && either == placements_[i];
        placements_[i] = either;
      }
      if (fits) return graph;
    }
  }

  // New arguments like values of the iteration.
  static Values arguments_like(Graph& graph, const Values& values,
                               const std::vector<Placement>& placements) {
    Values fresh;
    for (std::size_t i = 0; i < values.size(); ++i) {
      fresh.push_back(graph.add_argument(ValueType(graph.type(values[i])), placements[i]));
    }
    return fresh;
  }

  void fill(Graph& graph) {
    const std::size_t kept = loop_.at.outer_argument;
    Values order(arguments_.begin(), arguments_.begin() + std::ptrdiff_t(kept));
    Values targets, seeds, added;  // added: per carried value, the cotangent of its history
    const Values results = floating_results();
    for (std::size_t g = 0; g < made_.size(); ++g) {
      const bool is_carry = made_[g] == loop_.at.carried;
      Values values;
      if (is_carry) {
        values = pick(arguments_, carried_);
      } else {
        const auto entry = loop_.at.yielded(loop_.body, made_[g] - loop_.at.carried - 1);
        values.assign(entry.begin(), entry.end());
      }
      // Only floating-point values of the carry have cotangents.
      const Values fresh = arguments_like(graph, values, given_[g]);
      order.insert(order.end(), fresh.begin(), fresh.end());
      if (is_carry) {
        added = fresh;
      } else {
        targets.insert(targets.end(), values.begin(), values.end());
        seeds.insert(seeds.end(), fresh.begin(), fresh.end());
      }
    }
    Values sources = pick(arguments_, carried_);
    const Values operands = pick(arguments_, operands_);
    sources.insert(sources.end(), operands.begin(), operands.end());
    const Values given = arguments_like(graph, sources, placements_);
    order.insert(order.end(), given.begin(), given.end());
    order.insert(order.end(), arguments_.begin() + std::ptrdiff_t(kept), arguments_.end());
    seeds.insert(seeds.begin(), given.begin(), given.begin() + std::ptrdiff_t(carried_.size()));
    targets.insert(targets.begin(), results.begin(), results.end());
    for (const auto& group : groups_) {
      const Values more = pick(arguments_, group);
      sources.insert(sources.end(), more.begin(), more.end());
    }
    Values sums(sources.size(), kNoValue);
    std::copy(given.begin() + std::ptrdiff_t(carried_.size()), given.end(),
              sums.begin() + std::ptrdiff_t(carried_.size()));
    Builder b(graph);
    Values gradients = dense_gradient(b, targets, seeds, sources, sums);
    for (std::size_t i = 0; i < added.size(); ++i) {
      gradients[i] = b("add", {gradients[i], added[i]});
    }
    graph.outputs = std::move(gradients);
    graph.set_arguments(order);
  }

  Values floating_results() const {
    Values results;
    for (std::size_t i : carried_) {
      results.push_back(loop_.body.outputs[i - loop_.at.argument]);
    }
    return results;
  }

  const Loop& loop_;
  const VjpArgs& args_;
  const Values& sums_;
  Values arguments_;                              // of the loop's body
  std::vector<std::size_t> carried_, operands_;   // arguments that are differentiated
  std::vector<std::size_t> differentiated_;       // histories that are
  std::vector<std::vector<std::size_t>> groups_;  // and the arguments that come out of them
  std::vector<std::size_t> made_;                 // results: histories with cotangents
  std::vector<std::vector<Placement>> given_;     // of those cotangents' arrays
  std::vector<Placement> placements_;             // of cotangents and sums
};

// The cotangents of arrays whose rows made a history: the rows of the history's own cotangent,
// which has only those of floats.
Values unstack_gradient(const Node& node, const VjpArgs& args) {
  StackRoundsAttrs attrs;
  std::vector<std::size_t> floats = floating(args.b.graph(), node.inputs, 0, node.inputs.size());
  Values result(node.inputs.size(), kNoValue);
  if (args.ct[0] == kNoValue || floats.empty()) return result;
  const std::vector<Placement> placements = entry_placements(args.b.graph(), args.ct[0]);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const ValueType& type = args.b.type(node.inputs[floats[i]]);
    attrs.rounds = type.shape[0];
    attrs.add(entry_type(type), entry_placement(type, placements[i]));
  }
  const Values rows =
      args.b.apply(OpRegistry::instance().get("stack_rounds"), {{args.ct[0]}}, std::move(attrs));
  for (std::size_t i = 0; i < floats.size(); ++i) result[floats[i]] = rows[i];
  return result;
}

Values stack_gradient(const VjpArgs& args) {
  Values cts;
  for (std::size_t i = 0; i < args.out.size(); ++i) {
    cts.push_back(args.ct[i] == kNoValue ? zeros_like(args.b, args.out[i]) : args.ct[i]);
  }
  return args.b.apply(OpRegistry::instance().get("unstack_rounds"), cts);
}

}  // namespace

bool is_history(const Graph& graph, Value value) {
  const Node* node = graph.producer(value);
  if (!node || !node->op->has(kStacksResiduals)) return false;
  return std::size_t(graph.values[value].result) >= carried_values(*node);
}

bool has_gradient(const Graph& graph, Value value) {
  return is_floating(graph.type(value).dtype) || is_history(graph, value);
}

Value add_cotangents(Builder& b, Value x, Value y) {
  return b(is_history(b.graph(), x) ? "add_histories" : "add", {x, y});
}

Values control_gradient(const Node& node, const VjpArgs& args, const std::vector<bool>& wanted,
                        Values& sums) {
  if (node.attrs.get_if<CondAttrs>()) return cond_gradient(node, args, wanted, sums);
  if (node.regions.empty()) {
    sums.assign(sums.size(), kNoValue);
    if (is_op<"unstack_rounds">(node)) return unstack_gradient(node, args);
    if (node.attrs.get_if<StackRoundsAttrs>()) return stack_gradient(args);
    return {args.ct[0], args.ct[0]};  // a sum of histories
  }
  const Loop loop{node};
  // The cotangents of xs and of the carry are summed within each iteration.
  std::fill_n(sums.begin(), loop.at.outer_operand, kNoValue);
  return IterationGradient(loop, args, wanted, sums).build();
}

}  // namespace samegrad
