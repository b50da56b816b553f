// Replica invariance: finds the lines where a program is not bitwise identical to one replica.
// Placements say what its collectives combine; a walk back from there finds the line.
#include "analysis/replica_invariance.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include "analysis/count_powers.h"
#include "base/error.h"
#include "ir/op_def.h"
#include "ops/attributes.h"
#include "ops/stacked_iterations.h"

namespace samegrad {
namespace {

using Reason = std::optional<BitsReason>;

// A graph and, of a body, the node it belongs to.
struct GraphScope {
  const Graph& graph;
  const Node* owner = nullptr;
  const GraphScope* outer = nullptr;
};

template <class Visit>
void each_body(const Node& node, const GraphScope& scope, Visit visit) {
  for (const GraphPtr& region : node.regions) visit(GraphScope{*region, &node, &scope});
}

bool reads_placed(const Graph& graph, const Node& node, Placement placement) {
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (node.op->reads(k) && graph.placement(node.inputs[k]) == placement) return true;
  }
  return false;
}

// "reduce_max <what>", and its line.
BitsReason named(const Graph& graph, const Node& node, const char* what) {
  BitsReason reason;
  if (node.location >= 0 && std::size_t(node.location) < graph.locations.size()) {
    reason.line = graph.locations[std::size_t(node.location)];
  }
  const auto* parts = node.attrs.get_if<NamedAttrs>();
  reason.text = text(parts ? parts->names : node.op->name, " ", what);
  return reason;
}

// Finds the node that makes a value kVarying.
class VaryingOrigin {
 public:
  static BitsReason of(const GraphScope& scope, Value value) {
    const Graph& graph = scope.graph;
    const ValueInfo& info = graph.values[value];
    if (info.source != Source::kNode) return of_source(scope, info);
    const Node& node = graph.nodes[info.node()];
    if (draws_per_replica(graph, node)) {
      return named(graph, node,
                   "draws other numbers on each replica, as its result has no examples");
    }
    if (const Value own = own_operand(graph, node); own != kNoValue) return of(scope, own);
    return node.op->has(kControl) ? of_control(scope, node) : of_node(graph, node);
  }

 private:
  static Value own_operand(const Graph& graph, const Node& node) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const bool own = graph.placement(node.inputs[k]) == Placement::kVarying;
      if (own && (node.op->reads(k) || node.op->has(kRandomOp))) return node.inputs[k];
    }
    return kNoValue;
  }

  // True if the rows are numbered by the replica, and not by the examples.
  static bool draws_per_replica(const Graph& graph, const Node& node) {
    const Node* source = node.inputs.empty() ? nullptr : graph.producer(node.inputs.back());
    return node.op->has(kRandomOp) && source && source->op->has(kReplicaDependent);
  }

  static BitsReason of_source(const GraphScope& scope, const ValueInfo& info) {
    if (info.source == Source::kVariable) {
      const std::string& name = scope.graph.variables[info.slot()].name;
      return {{}, text("variable '", name, "' has a value per replica")};
    }
    if (!scope.outer) return {{}, "an argument has a value per replica"};
    const Value own = own_operand(scope.outer->graph, *scope.owner);
    if (own != kNoValue) return of(*scope.outer, own);
    return first_in(scope).value_or(
        named(scope.outer->graph, *scope.owner, "has a value per replica"));
  }

  // A value that an iteration makes kVarying has its origin in the body.
  static BitsReason of_control(const GraphScope& scope, const Node& node) {
    if (node.attrs.get_if<StackRoundsAttrs>()) {
      const Node* loop = scope.graph.producer(node.inputs[0]);
      if (loop && loop->op->has(kControl)) return of_control(scope, *loop);
    }
    const auto* rows = node.attrs.get_if<ReplayAttrs>();
    if (rows && rows->varying && rows->forward) {
      BitsReason reason = named(scope.graph, node, "");
      reason.text = "a loop over rows has as many iterations as the replica has examples";
      return reason;
    }
    const auto* control = node.attrs.get_if<ControlAttrs>();
    if (control && control->varying) {
      return named(scope.graph, node, "has a condition that differs between replicas");
    }
    Reason reason;
    each_body(node, scope, [&](const GraphScope& body) {
      if (!reason) reason = first_in(body);
    });
    return reason.value_or(named(scope.graph, node, "merges values that differ between replicas"));
  }

  static Reason first_in(const GraphScope& scope) {
    for (const Node& node : scope.graph.nodes) {
      const bool own = std::ranges::any_of(node.outputs, [&](Value output) {
        return scope.graph.placement(output) == Placement::kVarying;
      });
      if (!own || own_operand(scope.graph, node) != kNoValue) continue;
      return node.op->has(kControl) ? of_control(scope, node) : of_node(scope.graph, node);
    }
    return {};
  }

  static BitsReason of_node(const Graph& graph, const Node& node) {
    if (reads_placed(graph, node, Placement::kPartial)) {
      return named(graph, node, "changes a per-replica sum before the all-reduce");
    }
    if (reads_placed(graph, node, Placement::kSharded)) {
      return named(graph, node, "is computed from one replica's batch");
    }
    return named(
        graph, node,
        node.inputs.empty() ? "differs between replicas" : "depends on the per-replica batch size");
  }
};

// Returns the operation that changes a partial value between its reduction tree and its collective.
// Floating-point addition does not commute with such an operation.
Reason change_of(const GraphScope& scope, Value value) {
  const Graph& graph = scope.graph;
  const Node* node = graph.producer(value);
  if (!node) {
    return BitsReason{{}, "a branch or loop all-reduces a per-replica sum from outside of it"};
  }
  if (node->op->has(kAliases)) return change_of(scope, node->inputs[0]);
  if (node->op->has(kControl)) {
    Reason reason;
    if (node->attrs.get_if<CondAttrs>()) {
      const auto result = graph.values[value].result;
      each_body(*node, scope, [&](const GraphScope& body) {
        const Value made = body.graph.outputs[std::size_t(result)];
        if (!reason && body.graph.varying(made)) reason = change_of(body, made);
      });
      return reason;
    }
    return named(graph, *node,
                 "accumulates a per-replica sum over iterations before the all-reduce");
  }
  if (!reads_placed(graph, *node, Placement::kPartial)) return {};
  return named(graph, *node, "changes a per-replica sum before the all-reduce");
}

// Calls visit(node) for the nodes that writes and results equal on all replicas need, the last
// first.
template <class Visit>
void each_needed(const Graph& graph, Visit visit) {
  PerValue<bool> needed(graph.values.size(), false);
  const auto need = [&](Value value) { needed[value] = needed[value] || !graph.varying(value); };
  for (Value output : graph.outputs) need(output);
  for (const StateWrite& write : graph.writes) need(write.value);
  for (NodeId n : graph.nodes.ids().reversed()) {
    const Node& node = graph.nodes[n];
    if (std::ranges::none_of(node.outputs, [&](Value v) { return needed[v]; })) continue;
    for (Value input : node.inputs) needed[input] = true;
    visit(node);
  }
}

class Search {
 public:
  std::vector<BitsReason> run(const Graph& program, const Graph& compiled) && {
    const GraphScope scope{compiled};
    each_needed(compiled, [&](const Node& node) { visit(scope, node); });
    const CountWalk counts(program);
    each_needed(program, [&](const Node& node) { check_count(program, counts, node); });
    for (const Value output : std::views::reverse(compiled.outputs)) check_result(scope, output);
    std::ranges::reverse(found_);
    return std::move(found_);
  }

 private:
  void visit(const GraphScope& scope, const Node& node) {
    if (node.op->has(kCollective)) check(scope, node);
    if (!node.op->has(kControl)) return;
    each_body(node, scope, [&](const GraphScope& body) {
      for (const Node& inner : body.graph.nodes) visit(body, inner);
    });
  }

  void check(const GraphScope& scope, const Node& node) {
    const Graph& graph = scope.graph;
    const auto* all_reduce = node.attrs.get_if<AllReduceAttrs>();
    const bool mean = all_reduce && all_reduce->op == ReduceOp::kMean;
    if (node.op->exchange.first_only) {
      if (graph.varying(node.inputs[0])) {
        note(named(graph, node, "takes the first replica's value"));
      }
      return;
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value input = node.inputs[k];
      if (!node.op->reads(k)) continue;
      if (graph.placement(input) == Placement::kVarying) note(VaryingOrigin::of(scope, input));
      if (graph.placement(input) == Placement::kSharded && !graph.type(node.outputs[0]).batched()) {
        note(named(graph, node, "combines examples of different replicas by position"));
      }
      if (graph.placement(input) != Placement::kPartial) continue;
      if (node.op->exchange && !graph.varying(node.outputs[0])) {
        note(named(graph, node, "gives each replica another component"));
      } else if (mean) {
        note(named(graph, node, "averages per-replica sums over the replicas"));
      } else if (const Reason reason = change_of(scope, input);
                 reason && is_floating(graph.type(input).dtype)) {
        note(*reason);
      }
    }
    if (node.op->exchange && graph.placement(node.inputs[0]) == Placement::kReplicated) {
      note(named(graph, node, "gives each replica another component"));
    }
  }

  // Each replica returns a value of its own, of which one device has one.
  void check_result(const GraphScope& scope, Value output) {
    if (scope.graph.placement(output) == Placement::kVarying)
      note(VaryingOrigin::of(scope, output));
  }

  // A sum over the replicas of what all of them have, or of what was divided by their number.
  void check_count(const Graph& graph, const CountWalk& counts, const Node& node) {
    const auto* all_reduce = node.attrs.get_if<AllReduceAttrs>();
    if (!all_reduce || all_reduce->op != ReduceOp::kSum) return;
    if (graph.placement(node.inputs[0]) == Placement::kVarying) return;  // named as such
    const CountTerms& sum = counts.of(node.outputs[0]);
    const bool depends =
        sum.known ? std::ranges::any_of(sum.terms,
                                        [](const CountTerm& term) {
                                          return term.powers.replicas != 0 && !term.ambiguous;
                                        })
                  : !graph.varying(node.inputs[0]);
    if (depends) note(named(graph, node, "depends on the number of replicas"));
  }

  void note(const BitsReason& reason) {
    if (std::ranges::find(found_, reason) == found_.end()) found_.push_back(reason);
  }

  std::vector<BitsReason> found_;
};

}  // namespace

std::vector<BitsReason> replica_dependences(const Graph& program, const Graph& compiled) {
  return compiled.replicas == 1 ? std::vector<BitsReason>() : Search().run(program, compiled);
}

}  // namespace samegrad
