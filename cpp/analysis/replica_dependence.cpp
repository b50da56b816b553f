#include "analysis/replica_dependence.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/count_powers.h"
#include "ir/regions.h"
#include "ops/attributes.h"
#include "ops/control.h"

namespace samegrad {
namespace {

// Dependence of a value on its replica, in order of precedence.
enum class Dependence : std::uint8_t {
  kSame,      // as on one device, or what the program says of this replica
  kPosition,  // positions of examples in the replica
  kDivisor,   // numbers of examples, inverses of sums over them, conditions on those
  kGradient,  // a kMean of the gradient walk
  kMean,      // linear in sums over the examples, with a divisor
  kStatistic
};

struct Fact {
  Dependence kind = Dependence::kSame;
  std::vector<int> origins = {};  // sorted indices of Findings

  bool operator==(const Fact&) const = default;
  bool is_mean() const { return kind == Dependence::kMean || kind == Dependence::kGradient; }
};

Fact joined(Fact a, const Fact& b) {
  if (a.origins.empty()) {
    a.origins = b.origins;
  } else if (!b.origins.empty() && a.origins != b.origins) {
    std::vector<int> both;
    std::ranges::set_union(a.origins, b.origins, std::back_inserter(both));
    a.origins = std::move(both);
  }
  a.kind = std::max(a.kind, b.kind);
  return a;
}

// The nodes that made means and statistics, of a graph and the bodies in it.
class Findings {
 public:
  int of(const Graph& graph, const Node& node, ReplicaDependence::Statistic statistic) {
    const auto [at, fresh] = indices_.try_emplace(&node, int(list_.size()));
    if (fresh) {
      const bool known = node.location >= 0 && std::size_t(node.location) < graph.locations.size();
      list_.push_back(
          {statistic, node.op->name, known ? graph.locations[std::size_t(node.location)] : ""});
    }
    return at->second;
  }

  // Only numbers of examples are among them.
  bool are_counts(const std::vector<int>& origins) const {
    return std::ranges::all_of(origins, [&](int origin) {
      return list_[std::size_t(origin)].statistic == ReplicaDependence::Statistic::kCount;
    });
  }

  std::vector<ReplicaDependence> that_reach(const std::vector<Fact>& sinks) {
    std::vector<bool> reached(list_.size(), false);
    for (const Fact& fact : sinks) {
      if (fact.kind < Dependence::kMean) continue;
      for (int origin : fact.origins) {
        reached[std::size_t(origin)] = true;
        if (fact.kind == Dependence::kStatistic) list_[std::size_t(origin)].averaged = false;
      }
    }
    std::vector<ReplicaDependence> found;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (!reached[i]) continue;
      const auto same = std::ranges::find(found, list_[i].location, &ReplicaDependence::location);
      if (same == found.end()) {
        found.push_back(list_[i]);
      } else {
        same->averaged &= list_[i].averaged;
      }
    }
    return found;
  }

 private:
  std::map<const Node*, int> indices_;
  std::vector<ReplicaDependence> list_;
};

// The operands of a node that differ between replicas, by what they are.
struct Operands {
  Fact all;               // of everything that is read, joined
  bool examples = false;  // one entry per example
  bool scaled = false;    // one entry per example, divided: a mean or a divisor
  bool sum = false, mean = false, divisor = false;  // one value for all examples
  bool position = false;
  bool ordinary = false;   // examples on an ordinary axis
  bool counted = false;    // examples whose number Python knows
  bool gathered = false;   // the examples of all replicas
  bool stated = false;     // the replica's own, as the program says
  bool condition = false;  // a bool among them that differs
  int means = 0;

  bool per_example() const { return examples || scaled; }
  bool statistic() const { return all.kind == Dependence::kStatistic; }
};

class DependenceAnalysis {
 public:
  DependenceAnalysis(const Graph& graph, Findings& findings, const std::vector<Fact>& arguments,
                     bool is_body)
      : graph_(graph), findings_(findings), facts_(graph.values.size()), is_body_(is_body) {
    for (Value v : graph.values.ids()) {
      const ValueInfo& info = graph.values[v];
      if (info.source == Source::kArgument && info.argument() < arguments.size()) {
        facts_[v] = arguments[info.argument()];
      }
    }
    for (const Node& node : graph.nodes) visit(node);
  }

  const Fact& of(Value value) const { return facts_[value]; }

  std::vector<Fact> outputs() const {
    std::vector<Fact> found;
    for (Value output : graph_.outputs) found.push_back(facts_[output]);
    return found;
  }

 private:
  void visit(const Node& node) {
    if (node.outputs.empty()) return;  // what the program says about gradients
    if (node.op->has(kControl)) return control(node);
    const Operands in = operands_of(node);
    for (Value output : node.outputs) {
      Fact fact = result(node, in, output);
      if (fact.kind == Dependence::kMean && node.derivative) fact.kind = Dependence::kGradient;
      facts_[output] = std::move(fact);
    }
  }

  // True if all examples have one value, as those of ones_like.
  bool is_uniform(Value value) const {
    const Node* node = graph_.producer(value);
    return node && (node->attrs.get_if<FullAttrs>() || node->attrs.get_if<FullSizesAttrs>());
  }

  Operands operands_of(const Node& node) const {
    Operands found;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value input = node.inputs[k];
      if (!node.op->reads(k)) continue;
      const Fact& fact = facts_[input];
      found.all = joined(std::move(found.all), fact);
      const ValueType& type = graph_.type(input);
      const bool batched = type.batched();
      found.counted |= batched && graph_.symbols[std::size_t(type.batch.symbol)].fixed;
      found.gathered |= batched && !graph_.varying(input);
      if (!graph_.varying(input)) continue;
      found.condition |= type.dtype == DType::kBool;
      found.means += fact.is_mean();
      if (fact.kind == Dependence::kPosition) {
        found.position = true;
      } else if (fact.kind == Dependence::kSame) {
        const bool uniform = batched && is_uniform(input);
        found.position |= uniform;
        found.examples |= batched && !uniform;
        found.sum |= !batched && graph_.placement(input) == Placement::kPartial;
        found.stated |= graph_.placement(input) == Placement::kVarying;
        found.ordinary |= !batched && has_own_sizes(type);
      } else if (batched) {
        found.scaled = true;
      } else {
        found.mean |= fact.is_mean();
        found.divisor |= fact.kind == Dependence::kDivisor;
      }
    }
    return found;
  }

  Fact result(const Node& node, const Operands& in, Value output) {
    if (node.op->has(kReplicaInvariant)) return {};
    if (node.op->has(kCollective)) return collected(node, in);
    if (states_replica(node, in, output)) return {};
    if (in.statistic()) return in.all;
    const Placement placement = graph_.placement(output);
    if (node.op->linearity == Linearity::kCount && placement != Placement::kReplicated) {
      return made(Dependence::kDivisor, node, ReplicaDependence::Statistic::kCount);
    }
    if (placement == Placement::kPartial) {
      // Numbers of examples alone stay what they are, and a sum with others is a sum.
      return in.sum || in.per_example() ? of_replicated(node) : in.all;
    }
    if (placement != Placement::kVarying) return in.all;
    if (node.op->has(Trait(kRandomOp | kReplicaDependent))) return in.all;
    const std::optional<Dependence> kind = kind_of(node, in, output);
    return kind ? fact_of(*kind, node, in) : statistic(node, in);
  }

  // The fact of the operands that all replicas share: a mean of means.
  Fact of_replicated(const Node& node) const {
    Fact found;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const bool shared = node.op->reads(k) && !graph_.varying(node.inputs[k]);
      if (shared) found = joined(std::move(found), facts_[node.inputs[k]]);
    }
    return found;
  }

  // True if the program chooses by the replica: a statistic times (replica_id == 0), say.
  bool states_replica(const Node& node, const Operands& in, Value output) const {
    const Linearity rule = node.op->linearity;
    const bool chooses = rule == Linearity::kProduct || rule == Linearity::kChoice;
    return chooses && in.stated && !in.per_example() && !graph_.type(output).batched();
  }

  Fact collected(const Node& node, const Operands& in) const {
    const Value operand = node.inputs[0];
    const Fact& fact = facts_[operand];
    // A statistic of each replica that the program asks for.
    if (node.op->exchange && !graph_.type(operand).batched()) return {};
    if (!in.all.is_mean()) return in.statistic() ? in.all : Fact{};
    return graph_.varying(operand) && is_share(operand) ? Fact{} : fact;
  }

  // A mean times the replica's number of examples is a sum again.
  bool is_share(Value value) const {
    if (is_body_) return false;
    if (!counts_) counts_.emplace(graph_);
    const CountTerms& terms = counts_->of(value);
    return terms.known && !terms.nonlinear.exists() &&
           std::ranges::all_of(terms.terms, [](const CountTerm& term) {
             return term.powers.local == (term.varying ? 1 : 0);
           });
  }

  // Return the kind of a value that is the replica's own, or nothing for a statistic.
  std::optional<Dependence> kind_of(const Node& node, const Operands& in, Value output) const {
    if (needs_examples(node, in, output)) return std::nullopt;
    const Linearity rule = node.op->linearity;
    if (in.position && rule == Linearity::kSum && in.per_example() && !scales_position(node)) {
      return in.means ? Dependence::kMean : Dependence::kSame;
    }
    const bool divided = in.sum || in.mean || in.divisor || in.scaled;
    if (!divided) {
      if (in.position) return Dependence::kPosition;
      if (in.ordinary && !linear(rule) && !graph_.type(output).batched() &&
          !has_own_sizes(graph_.type(output))) {
        return std::nullopt;
      }
      if (in.stated) return Dependence::kSame;
      if (!in.per_example()) return Dependence::kPosition;  // made of types alone
      // Each example with all examples; or examples on an ordinary axis, as loops read them.
      const bool as_they_are =
          node.op->has(kAliases) || picks_each(node, in) || joins_batches(node, output);
      return in.gathered || as_they_are ? std::optional(Dependence::kSame) : std::nullopt;
    }
    const bool batched = graph_.type(output).batched();
    if (batched && in.mean && rule != Linearity::kQuotient) return std::nullopt;
    if (graph_.type(output).dtype == DType::kBool) return condition(in);
    switch (rule) {
      case Linearity::kSum:
        return sum(in);
      case Linearity::kChoice:
        return choice(in);
      case Linearity::kProduct:
        return product(in);
      case Linearity::kQuotient:
        return quotient(node, in);
      case Linearity::kInverse:
        return in.per_example() ? std::nullopt : std::optional(Dependence::kDivisor);
      default:
        return in.sum || in.mean || in.per_example() ? std::nullopt
                                                     : std::optional(Dependence::kDivisor);
    }
  }

  // True if it combines examples of the replica otherwise than by a sum.
  bool needs_examples(const Node& node, const Operands& in, Value output) const {
    if (!in.per_example()) return false;
    if (has_own_sizes(graph_.type(output))) return !node.op->has(kAliases);
    const Linearity rule = node.op->linearity;
    if (node.locality == Locality::kBatchReduction) return !linear(rule);
    const bool whole = node.locality == Locality::kFullBatch && !node.op->has(kAliases);
    if (picks_each(node, in) || joins_batches(node, output)) return false;
    return whole && !in.position && !in.stated && !in.gathered;
  }

  // True if examples are taken out where Python knows their number, and so takes each of them.
  static bool picks_each(const Node& node, const Operands& in) {
    return in.counted && node.op->linearity == Linearity::kSum;
  }

  // True if the batches of a replica are concatenated: another order of the examples.
  bool joins_batches(const Node& node, Value output) const {
    const ValueType& type = graph_.type(output);
    return node.op->linearity == Linearity::kSum && type.batched() &&
           graph_.symbols[std::size_t(type.batch.symbol)].kind == Symbol::Kind::kSum;
  }

  static bool linear(Linearity rule) {
    return rule == Linearity::kSum || rule == Linearity::kProduct;
  }

  // n by n for the replica's n examples.
  bool has_own_sizes(const ValueType& type) const {
    for (int axis = 0; axis < type.shape.rank(); ++axis) {
      const bool counts = type.batched() && axis == type.batch.axis;
      if (!counts && differs_between_replicas(graph_.symbols, type.shape[axis])) return true;
    }
    return false;
  }

  // True if the sum is over positions; otherwise they select elements.
  bool scales_position(const Node& node) const {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.op->scales(k) && facts_[node.inputs[k]].kind == Dependence::kPosition) return true;
    }
    return false;
  }

  // Guards against no examples or NaN are not functions of what they guard.
  static std::optional<Dependence> condition(const Operands& in) {
    const bool compared = in.per_example() && (in.sum || in.mean || in.divisor);
    return compared ? std::nullopt : std::optional(Dependence::kDivisor);
  }

  static std::optional<Dependence> sum(const Operands& in) {
    if (in.per_example() && (in.sum || in.mean || in.divisor)) return std::nullopt;
    // A sum over the examples and another value of the replica: nothing was divided.
    if (in.sum && in.stated && !in.means && !in.divisor) return Dependence::kSame;
    return in.means || in.sum || in.examples ? Dependence::kMean : Dependence::kDivisor;
  }

  static std::optional<Dependence> choice(const Operands& in) {
    if (in.per_example()) {
      const bool one_for_all = in.sum || in.mean;
      return one_for_all ? std::nullopt : std::optional(Dependence::kMean);
    }
    if (in.condition) return in.means || in.sum ? Dependence::kMean : Dependence::kDivisor;
    return in.mean ? std::nullopt : std::optional(Dependence::kDivisor);
  }

  static std::optional<Dependence> product(const Operands& in) {
    const bool of_all = in.sum || in.mean;
    if (in.means > 1 || (of_all && in.per_example()) || (in.sum && in.mean)) return std::nullopt;
    if (in.sum && !in.divisor) return std::nullopt;
    return in.means || in.sum || in.examples ? Dependence::kMean : Dependence::kDivisor;
  }

  std::optional<Dependence> quotient(const Node& node, const Operands& in) const {
    const Value above = node.inputs[0], below = node.inputs[1];
    const Fact& fact = facts_[above];
    const bool data = graph_.varying(above) && fact.kind != Dependence::kDivisor;
    if (!graph_.varying(below)) return fact.kind;
    if (graph_.type(below).batched()) {
      return in.sum || in.mean ? std::nullopt : std::optional(Dependence::kMean);
    }
    return data ? Dependence::kMean : Dependence::kDivisor;
  }

  Fact fact_of(Dependence kind, const Node& node, const Operands& in) {
    if (kind < Dependence::kDivisor) return {kind, {}};
    // A mean begins where it is divided.
    const bool starts = kind != Dependence::kDivisor && in.means == 0;
    if (starts || in.all.origins.empty()) {
      return made(kind, node, ReplicaDependence::Statistic::kMean);
    }
    Fact fact = in.all;
    fact.kind = kind;
    return fact;
  }

  Fact made(Dependence kind, const Node& node, ReplicaDependence::Statistic statistic) {
    return {kind, {findings_.of(graph_, node, statistic)}};
  }

  // A mean became a statistic by its use: the line of the mean is named.
  Fact statistic(const Node& node, const Operands& in) {
    const bool of_mean = in.all.kind == Dependence::kMean && !in.all.origins.empty();
    if (!of_mean) return made(Dependence::kStatistic, node, ReplicaDependence::Statistic::kOther);
    Fact fact = in.all;
    fact.kind = Dependence::kStatistic;
    return fact;
  }

  void control(const Node& node) {
    const bool cond = node.attrs.get_if<CondAttrs>() != nullptr;
    std::vector<Fact> results(node.outputs.size());
    Fact all;
    for (Value input : node.inputs) all = joined(std::move(all), facts_[input]);
    if (node.regions.empty()) {  // histories
      for (Value output : node.outputs) facts_[output] = all;
      return;
    }
    std::vector<Fact> carried(carried_values(node));
    Fact chosen = cond ? predicate(node, facts_[node.inputs[0]]) : Fact{};
    for (bool changed = true; std::exchange(changed, false);) {
      for (std::size_t r = 0; r < node.regions.size(); ++r) {
        const Graph& region = *node.regions[r];
        const DependenceAnalysis body(region, findings_, arguments_of(node, region, carried, all),
                                      true);
        const std::vector<Fact> outputs = body.outputs();
        if (is_condition(node, r)) {
          chosen = joined(std::move(chosen), predicate(node, outputs[0]));
          continue;
        }
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          all = joined(std::move(all), outputs[i]);
          if (i < results.size()) results[i] = joined(std::move(results[i]), outputs[i]);
          if (i >= carried.size()) continue;
          const Fact next = joined(carried[i], outputs[i]);
          changed |= next != std::exchange(carried[i], next);
        }
      }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const bool variable = cond || i < carried.size();
      facts_[node.outputs[i]] = joined(variable ? std::move(results[i]) : all, chosen);
    }
  }

  // A condition that differs makes statistics of the results: the number of iterations differs.
  // A loop over the replica's examples goes on for as many iterations.
  Fact predicate(const Node& node, Fact fact) const {
    const auto* control = node.attrs.get_if<ControlAttrs>();
    if (!control || !control->varying || fact.kind == Dependence::kSame) return fact;
    if (fact.kind < Dependence::kMean && findings_.are_counts(fact.origins)) return {};
    fact.kind = Dependence::kStatistic;
    return fact;
  }

  // Operands go to the last arguments of a body, behind entries of histories.
  std::vector<Fact> arguments_of(const Node& node, const Graph& region,
                                 const std::vector<Fact>& carried, const Fact& all) const {
    std::vector<Fact> arguments(region.arguments.size(), all);
    const std::size_t given = std::min(node.inputs.size(), arguments.size());
    const std::size_t first = ControlSignature(node).argument;
    for (std::size_t back = 1; back <= given; ++back) {
      const std::size_t at = arguments.size() - back;
      if (at < first) break;
      arguments[at] = facts_[node.inputs[node.inputs.size() - back]];
      const std::size_t variable = at - first;
      if (variable < carried.size()) {
        arguments[at] = joined(std::move(arguments[at]), carried[variable]);
      }
    }
    return arguments;
  }

  const Graph& graph_;
  Findings& findings_;
  PerValue<Fact> facts_;
  bool is_body_;
  mutable std::optional<CountWalk> counts_;
};

bool has_own_values(const Graph& graph) {
  for (Value v : graph.values.ids()) {
    if (graph.placement(v) == Placement::kVarying) return true;
  }
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return std::ranges::any_of(node.regions,
                               [](const GraphPtr& region) { return has_own_values(*region); });
  });
}

}  // namespace

std::vector<ReplicaDependence> replica_dependences_of(const Graph& graph,
                                                      const std::vector<Value>& sinks) {
  if (graph.replicas == 1 || sinks.empty() || !has_own_values(graph)) return {};
  Findings findings;
  const DependenceAnalysis walk(graph, findings, {}, false);
  std::vector<Fact> facts;
  for (Value sink : sinks) facts.push_back(walk.of(sink));
  return findings.that_reach(facts);
}

}  // namespace samegrad
