#include "passes/loop_fission.h"

#include <algorithm>
#include <optional>

#include "base/reduction_order.h"
#include "base/thresholds.h"
#include "ops/attributes.h"
#include "ops/control.h"
#include "passes/passes.h"
#include "passes/pattern.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

// A variable that an iteration adds to.
struct FissionSum : IterationSum {
  std::size_t variable;
  Value before;
};

bool is_replica_sum(const Node& node) {
  const auto* all_reduce = node.attrs.get_if<AllReduceAttrs>();
  return all_reduce && all_reduce->op == ReduceOp::kSum && node.inputs.size() == 1;
}

// Sums that stay in the first cache are as well off in the loop.
bool is_large(const ValueType& type) {
  if (type.batched() || type.shape.symbolic()) return false;
  return type.shape.size() * std::int64_t(size_of(type.dtype)) > thresholds().deferred_bytes;
}

bool has_rows_of_examples(const ValueType& type) {
  return type.shape.rank() == 2 && type.batched() && type.batch.axis == 0;
}

bool is_product_over_examples(const Graph& iteration, const Node& node) {
  const auto* attrs = is_op<"matmul">(node) ? node.attrs.get_if<MatmulAttrs>() : nullptr;
  if (!attrs || !attrs->transpose_a || attrs->transpose_b ||
      node.locality != Locality::kBatchReduction) {
    return false;
  }
  const ValueType &a = iteration.type(node.inputs[0]), &b = iteration.type(node.inputs[1]);
  // Longer leaves are summed example by example.
  const bool short_leaves = leaf_is_one_chain(a.batch.rows_per_example);
  return has_rows_of_examples(a) && has_rows_of_examples(b) && short_leaves;
}

class LoopFission {
 public:
  LoopFission(Rewriter& rewrite, const Node& node, const Graph& body)
      : rewrite_(rewrite),
        node_(node),
        body_(body),
        attrs_(node.attrs.as<ReplayAttrs>()),
        arguments_(argument_values(body)),
        signature_(node) {}

  // False if there is nothing to split off.
  bool run() {
    for (std::size_t i = 0; i < signature_.carried; ++i) {
      const Value before = arguments_[signature_.argument + i], after = body_.outputs[i];
      const auto sum = find_iteration_sum(body_, before, after);
      if (sum && is_large(body_.type(after))) sums_.push_back({*sum, i, before});
    }
    if (sums_.empty() || signature_.carried + attrs_.yields.size() == 1) return false;
    for (const FissionSum& sum : sums_) keep_operands(sum);
    const Values made = emit_rest();
    std::size_t next = 0;
    for (std::size_t i = 0; i < signature_.carried; ++i) {
      if (!is_split(i)) rewrite_.replace(node_.outputs[i], made[next++]);
    }
    for (std::size_t j = signature_.carried; j < node_.outputs.size(); ++j) {
      rewrite_.replace(node_.outputs[j], made[next++]);
    }
    const Values histories(made.begin() + std::ptrdiff_t(signature_.carried - sums_.size() + 1),
                           made.end());
    for (const FissionSum& sum : sums_) emit_sum(sum, histories);
    return true;
  }

 private:
  bool is_split(std::size_t variable) const {
    return std::ranges::any_of(sums_, [&](const FissionSum& s) { return s.variable == variable; });
  }

  // The history that an argument of the body is an entry of; none.
  std::optional<std::size_t> history_of(Value value) const {
    const ValueInfo& info = body_.values[value];
    if (info.source != Source::kArgument || info.argument() >= signature_.argument) return {};
    const std::vector<std::size_t>& entries = signature_.entries;
    return std::size_t(std::ranges::upper_bound(entries, info.argument()) - entries.begin() - 1);
  }

  // Stacks the operands of the sums: one history more for each operand that no history has.
  void keep_operands(const FissionSum& sum) {
    if (groups_.empty()) {
      for (std::size_t h = 0; h < attrs_.yields.size(); ++h) {
        const auto entry = signature_.yielded(body_, h);
        groups_.emplace_back(entry.begin(), entry.end());
      }
    }
    for (Value input : sum.product->inputs) {
      if (!history_of(input) && !group_of(input)) groups_.push_back({input});
    }
  }

  std::optional<std::size_t> group_of(Value value) const {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (std::ranges::find(groups_[g], value) != groups_[g].end()) return g;
    }
    return {};
  }

  Value operand(std::size_t place) const {
    return rewrite_(node_.inputs[signature_.operand_of(place)]);
  }

  // The loop without the sums: their initial values become an operand without readers.
  Values emit_rest() {
    Graph rest = body_;
    rest.outputs.clear();
    ReplayAttrs attrs = attrs_;
    attrs.variables -= std::int64_t(sums_.size());
    Values order(arguments_.begin(), arguments_.begin() + std::ptrdiff_t(signature_.argument)),
        last, inputs;
    for (std::size_t h = 0; h < attrs.entries.size(); ++h)
      inputs.push_back(rewrite_(node_.inputs[h]));
    for (std::size_t i = 0; i < signature_.carried; ++i) {
      if (is_split(i)) continue;
      order.push_back(arguments_[signature_.argument + i]);
      inputs.push_back(operand(signature_.argument + i));
      rest.outputs.push_back(body_.outputs[i]);
    }
    for (std::size_t at = signature_.argument + signature_.carried; at < arguments_.size(); ++at) {
      order.push_back(arguments_[at]);
      inputs.push_back(operand(at));
    }
    for (const FissionSum& sum : sums_) {
      order.push_back(sum.before);
      inputs.push_back(operand(signature_.argument + sum.variable));
    }
    attrs.yields.clear();
    for (const Values& group : groups_) {
      rest.outputs.insert(rest.outputs.end(), group.begin(), group.end());
      attrs.yields.push_back(std::int64_t(group.size()));
    }
    rest.set_arguments(order);
    return apply(inputs, std::move(attrs), eliminate_dead(std::move(rest)));
  }

  // The loop that adds: of entries and of what the sum was before. `made`: histories of the groups.
  void emit_sum(const FissionSum& sum, const Values& made) {
    Graph iteration;
    iteration.symbols = body_.symbols;
    iteration.replicas = body_.replicas;
    PerValue<Value> map(body_.values.size(), kNoValue);
    const auto add_argument = [&](Value value) {
      map[value] = iteration.add_argument(ValueType(body_.type(value)), body_.placement(value));
    };
    ReplayAttrs attrs;
    attrs.variables = 1;
    attrs.forward = attrs_.forward;
    Values inputs;
    const auto add_history = [&](Value history, const Values& entries) {
      if (std::ranges::find(inputs, history) != inputs.end()) return;
      inputs.push_back(history);
      attrs.entries.push_back(std::int64_t(entries.size()));
      std::ranges::for_each(entries, add_argument);
    };
    for (Value input : sum.product->inputs) {
      if (const auto h = history_of(input)) {
        const auto first = arguments_.begin() + std::ptrdiff_t(signature_.entries[*h]);
        add_history(rewrite_(node_.inputs[*h]), {first, first + attrs_.entries[*h]});
      } else {
        const std::size_t group = *group_of(input);
        add_history(made[group], groups_[group]);
      }
    }
    add_argument(sum.before);
    inputs.push_back(operand(signature_.argument + sum.variable));
    Builder b(iteration);
    for (const Node* step : {sum.product, sum.all_reduce, sum.add}) {
      if (!step) continue;
      Values operands;
      for (Value input : step->inputs) operands.push_back(map[input]);
      map[step->outputs[0]] = b.apply(*step->op, operands, step->attrs)[0];
      iteration.nodes.back().location = step->location;
      iteration.nodes.back().derivative = step->derivative;
    }
    iteration.outputs = {map[sum.add->outputs[0]]};
    const Values results = apply(inputs, std::move(attrs), std::move(iteration));
    rewrite_.replace(node_.outputs[sum.variable], results[0]);
  }

  Values apply(const Values& inputs, ReplayAttrs attrs, Graph body) {
    const Values results = rewrite_.builder().apply(
        *node_.op, inputs, std::move(attrs), {std::make_shared<const Graph>(std::move(body))});
    rewrite_.to().nodes.back().location = node_.location;
    rewrite_.to().nodes.back().derivative = node_.derivative;
    return results;
  }

  Rewriter& rewrite_;
  const Node& node_;
  const Graph& body_;  // without what nobody needs
  const ReplayAttrs& attrs_;
  Values arguments_;
  ControlSignature signature_;
  std::vector<FissionSum> sums_;
  std::vector<Values> groups_;  // what the iterations make for histories
};

// Iterations that replicas make alike, and whose variables no derivative asks for.
bool can_split(const Node& node, const PerValue<int>& uses) {
  const auto* replay = node.attrs.get_if<ReplayAttrs>();
  return replay && !replay->varying && uses[node.outputs[carried_values(node)]] == 0;
}

}  // namespace

std::optional<IterationSum> find_iteration_sum(const Graph& iteration, Value before, Value after) {
  using namespace pattern;  // NOLINT(google-build-using-namespace)
  const PerValue<int> uses = count_uses(iteration);
  IterationSum found{};
  const auto product = once(uses, node([&](const Node& node) {
                                    return is_product_over_examples(iteration, node);
                                  }).as(found.product));
  const auto all_reduced = once(uses, node(is_replica_sum, product).as(found.all_reduce));
  const auto typed = [&](const Graph&, Value term) {
    return iteration.type(term) == iteration.type(after) &&
           iteration.type(before) == iteration.type(after);
  };
  const auto sum =
      commuted<"add">(once(uses, same(before)), where(either(all_reduced, product), typed));
  if (!matches(iteration, after, once(uses, sum.as(found.add)))) return {};
  const DType dtype = iteration.type(after).dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return {};
  return found;
}

// Sums of products over the examples, such as the gradients of a recurrent layer's weights, become
// a loop of their own behind the one that they were in. It takes the operands of the products from
// histories and adds in the same order. The runtime passes over its sum once for many iterations.
Graph fission_loops(Graph graph) {
  const PerValue<int> uses = count_uses(graph);
  bool any = false;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    if (can_split(node, uses)) {
      const Graph clean = eliminate_dead(propagate_copies(body(node.regions)));
      if (LoopFission(rewrite, node, clean).run()) {
        any = true;
        continue;
      }
    }
    rewrite.copy(node);
  }
  return any ? rewrite.finish() : graph;
}

}  // namespace samegrad
