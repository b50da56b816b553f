#include "analysis/count_powers.h"

#include <algorithm>
#include <cstring>

#include "ops/attributes.h"

namespace samegrad {
namespace {

constexpr std::size_t kMaxTerms = 8;

CountTerms unknown(NodeId nonlinear = kNoNode) {
  CountTerms result;
  result.known = false;
  result.nonlinear = nonlinear;
  return result;
}

CountTerms one(const CountTerm& term) {
  CountTerms result;
  result.terms.push_back(term);
  return result;
}

CountPowers plus(CountPowers a, const CountPowers& b, int sign = 1) {
  a.local = std::int8_t(a.local + sign * b.local);
  a.global = std::int8_t(a.global + sign * b.global);
  a.replicas = std::int8_t(a.replicas + sign * b.replicas);
  return a;
}

CountTerm joined(const CountTerm& a, const CountTerm& b, int sign = 1) {
  CountTerm term = a;
  term.powers = plus(a.powers, b.powers, sign);
  term.data |= b.data;
  term.variable |= b.variable;
  term.varying |= b.varying;
  term.means |= b.means;
  term.repeated |= b.repeated;
  term.ambiguous |= b.ambiguous;
  term.order = std::max(a.order, b.order);
  if (!term.origin.exists()) term.origin = b.origin;
  return term;
}

// A replica's part of something that only the sum over replicas is right for.
bool is_share(const CountTerm& term) {
  return term.varying && term.variable && term.powers.local >= 1;
}

// Like joined(), at a node that is named if it introduces a count.
CountTerm joined_at(NodeId index, const CountTerm& a, const CountTerm& b, int sign = 1) {
  CountTerm term = joined(a, b, sign);
  const bool counts = sign * b.powers.local < 0 || b.powers.replicas != 0;
  const bool share = is_share(a) || is_share(b);
  if (!term.origin.exists() && (counts || share)) term.origin = index;
  return term;
}

NodeId nonlinear_of(const CountTerms& a, NodeId otherwise) {
  return a.nonlinear.exists() ? a.nonlinear : otherwise;
}

}  // namespace

bool CountTerm::alike(const CountTerm& other) const {
  return powers == other.powers && data == other.data && variable == other.variable &&
         varying == other.varying && means == other.means && repeated == other.repeated &&
         ambiguous == other.ambiguous && order == other.order;
}

void CountTerms::add(const CountTerm& term) {
  for (CountTerm& own : terms) {
    if (!own.alike(term)) continue;
    if (!own.origin.exists()) own.origin = term.origin;
    return;
  }
  terms.push_back(term);
  if (terms.size() > kMaxTerms) *this = unknown(nonlinear);
}

CountWalk::CountWalk(const Graph& graph) : graph_(graph), found_(graph.values.size()) {
  for (Value v : graph.values.ids()) {
    const ValueInfo& info = graph.values[v];
    if (info.source != Source::kNode) found_[v] = of_source(info);
  }
  for (NodeId i : graph.nodes.ids()) {
    if (graph.nodes[i].outputs.empty()) continue;  // what the program says about gradients
    const CountTerms result = of_node(i);
    for (Value output : graph.nodes[i].outputs) found_[output] = result;
  }
}

CountTerms CountWalk::of_source(const ValueInfo& info) const {
  CountTerm term;
  term.powers = info.counts.value_or(CountPowers{});
  term.data = info.source == Source::kArgument;
  term.variable = info.source == Source::kVariable;
  term.varying = info.placement == Placement::kSharded;
  // No rule covers values that are each replica's own, or that have examples of all replicas.
  const bool follows = info.placement == Placement::kSharded ||
                       (info.placement == Placement::kReplicated && !info.type.batched());
  return follows ? one(term) : unknown();
}

CountTerms CountWalk::of_node(NodeId index) {
  const Node& node = graph_.nodes[index];
  const ValueInfo& output = graph_.values[node.outputs[0]];
  if (node.op->linearity == Linearity::kCount) return count(node);
  std::vector<std::size_t> scaled;
  NodeId nonlinear;
  bool known = !node.op->exchange && !node.op->has(kControl), rows = false;
  // Examples that all replicas share follow no rule, nor do sums along other axes that count them.
  const bool alike = output.type.batched() && !graph_.varying(node.outputs[0]);
  known = known && !alike && !has_counted_size(graph_.symbols, output.type);
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!node.op->reads(k)) continue;
    const CountTerms& operand = of(node.inputs[k]);
    const bool parameter = !node.op->scales(k);
    // A condition chooses: its counts are not those of the result.
    const bool condition = parameter && graph_.type(node.inputs[k]).dtype == DType::kBool;
    // Guards that the program wrote (against NaN, say) are not functions of what they guard; those
    // of a derivative are.
    const bool guard =
        condition && operand.nonlinear.exists() && !graph_.nodes[operand.nonlinear].derivative;
    if (!guard) nonlinear = nonlinear_of(operand, nonlinear);
    known &= operand.known || condition;
    rows |= graph_.type(node.inputs[k]).batched();
    known &= !has_counted_size(graph_.symbols, graph_.type(node.inputs[k]));
    if (!parameter) scaled.push_back(k);
  }
  if (!known) return unknown(nonlinear);
  if (rows && node.locality == Locality::kFullBatch) return unknown(nonlinear);
  if (node.op->has(kCollective)) return all_reduced(index);
  if (scaled.empty() &&
      graph_.varying(node.outputs[0])) {  // random numbers, or which replica it is
    CountTerm term;
    term.varying = output.type.batched();
    if (term.varying) return one(term);
    const bool filled = node.op->type_only && !node.op->has(kRandomOp);  // full_like
    return filled ? one({}) : unknown();
  }
  CountTerms result = by_rule(index, scaled);
  result.nonlinear = nonlinear_of(result, nonlinear);
  if (result.known && node.locality == Locality::kBatchReduction) sum_examples(node, result);
  return result;
}

CountTerms CountWalk::operand(NodeId index, std::size_t k) const {
  const Node& node = graph_.nodes[index];
  const ValueInfo& info = graph_.values[node.inputs[k]];
  const bool of_gradient = info.source == Source::kNode && graph_.nodes[info.node()].derivative;
  CountTerms result = of(node.inputs[k]);
  for (CountTerm& term : result.terms) {
    if (of_gradient && !node.derivative && term.order == 0) term.order = 1;
    if (node.derivative && term.order == 1) term.order = 2;
  }
  return result;
}

CountTerms CountWalk::by_rule(NodeId index, const std::vector<std::size_t>& scaled) {
  const Node& node = graph_.nodes[index];
  const std::int8_t axis = node.inputs.empty() ? CountTerms::kNo : of(node.inputs[0]).sizes_of_axis;
  if (axis != CountTerms::kNo) return picked_size(node, axis);
  if (node.op->has(kReplicaShare)) return share(index);
  switch (node.op->linearity) {
    case Linearity::kSum:
      return with_parameters(index, sum(index, scaled));
    case Linearity::kChoice:
      return choice(index, scaled);
    case Linearity::kProduct:
      return product(index, scaled);
    case Linearity::kQuotient:
      return quotient(index, operand(index, 0), 1);
    case Linearity::kInverse:
      return quotient(index, one({}), 0);
    case Linearity::kNone:
    case Linearity::kCount:
      break;
  }
  return opaque(index);
}

CountTerms CountWalk::sum(NodeId index, const std::vector<std::size_t>& scaled) {
  const Node& node = graph_.nodes[index];
  CountTerms result;
  bool share = false, variables = false;
  for (std::size_t k : scaled) {
    for (const CountTerm& term : operand(index, k).terms) {
      share |= is_share(term);
      variables |= term.variable && !term.data && !term.varying;
      if (!term.is_plain()) result.add(term);
    }
  }
  if (share && variables && !node.derivative && !added_to_share_.exists()) added_to_share_ = index;
  // A number beside something else (an epsilon, zeros) changes no gradient.
  return result.known && result.terms.empty() ? one({}) : result;
}

// Adds the parameters of the result: indices, or the probabilities of a loss.
CountTerms CountWalk::with_parameters(NodeId index, CountTerms result) const {
  const Node& node = graph_.nodes[index];
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const bool condition = graph_.type(node.inputs[k]).dtype == DType::kBool;
    if (node.op->scales(k) || !node.op->reads(k) || condition) continue;
    for (const CountTerm& parameter : operand(index, k).terms) {
      if (!(parameter.powers == CountPowers{})) return unknown();
      for (CountTerm& term : result.terms) term = joined(term, parameter);
    }
  }
  return result;
}

CountTerms CountWalk::choice(NodeId index, const std::vector<std::size_t>& scaled) {
  CountTerms result = sum(index, scaled);
  for (const CountTerm& term : result.terms) {
    if (is_share(term)) return unknown(index);
  }
  return result.terms.size() <= 1 ? result : unknown();
}

CountTerms CountWalk::product(NodeId index, const std::vector<std::size_t>& scaled) {
  const Node& node = graph_.nodes[index];
  const double part = 1.0 / graph_.replicas;
  CountTerms result = one({});
  for (std::size_t k : scaled) {
    const Value factor = node.inputs[k];
    const bool ambiguous = may_mean(factor, part) || may_mean(factor, graph_.replicas);
    CountTerms next;
    for (const CountTerm& a : result.terms) {
      for (const CountTerm& b : operand(index, k).terms) {
        if (is_share(a) && is_share(b)) return unknown(index);
        next.add(joined_at(index, a, b));
      }
    }
    result = next;
    if (!result.known) break;
    for (CountTerm& term : result.terms) term.ambiguous |= ambiguous;
  }
  return result;
}

CountTerms CountWalk::quotient(NodeId index, const CountTerms& above, std::size_t below) {
  const CountTerms divisors = operand(index, below);
  if (divisors.terms.size() != 1) return unknown();
  const CountTerm& divisor = divisors.terms[0];
  const Value given = graph_.nodes[index].inputs[below];
  CountTerms result;
  for (const CountTerm& a : above.terms) {
    CountTerm term = joined_at(index, a, divisor, -1);
    term.ambiguous |= may_mean(given, graph_.replicas);
    result.add(term);
  }
  return result;
}

CountTerms CountWalk::share(NodeId index) const {
  CountTerm replicas;
  replicas.powers.replicas = 1;
  CountTerms result;
  for (const CountTerm& term : operand(index, 0).terms) {
    CountTerm part = joined_at(index, term, replicas, -1);
    // A mean over the examples of all replicas is a replica's sum over the global count.
    if (term.data && !term.varying && term.powers == CountPowers{}) {
      part.powers = {.local = 1, .global = -1, .replicas = 0};
      part.varying = true;
    }
    result.add(part);
  }
  return result;
}

// A literal 2 may be the number of replicas, if there are two, or halve something.
bool CountWalk::may_mean(Value value, double number) const {
  const ValueInfo& info = graph_.values[value];
  if (info.source != Source::kConstant || info.type.shape.rank() != 0 || info.counts) return false;
  const Array& array = graph_.constants[info.constant()];
  const Array meant = Array::number(array.dtype(), number);
  return std::memcmp(array.raw(), meant.raw(), array.bytes()) == 0;
}

CountTerms CountWalk::opaque(NodeId index) const {
  const Node& node = graph_.nodes[index];
  CountTerm result;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!node.op->reads(k)) continue;
    for (const CountTerm& term : operand(index, k).terms) {
      if (is_share(term)) return unknown(index);
      if (!(term.powers == CountPowers{})) return unknown();
      result = joined(result, term);
    }
  }
  return one(result);
}

CountTerms CountWalk::count(const Node& node) const {
  CountTerm term;
  const bool global = node.op->has(kReplicaInvariant);
  if (node.inputs.empty()) {
    term.powers.replicas = 1;
    return one(term);
  }
  const ValueInfo& x = graph_.values[node.inputs[0]];
  if (x.type.batched() && x.placement == Placement::kReplicated) return unknown();
  const auto* axes = node.attrs.get_if<CountAttrs>();
  if (!axes && graph_.type(node.outputs[0]).shape.rank() == 0) return unknown();
  if (!axes) {
    CountTerms sizes = one(term);
    sizes.sizes_of_axis = std::int8_t(x.type.batched() ? x.type.batch.axis : -1);
    return sizes;
  }
  const Ints& list = axes->axes;
  const auto rank = x.type.shape.rank();
  const bool counts = x.type.batched() && std::any_of(list.begin(), list.end(), [&](auto axis) {
                        return (axis < 0 ? axis + rank : axis) == x.type.batch.axis;
                      });
  term.varying = counts && !global;
  term.powers.local = std::int8_t(term.varying);
  term.powers.global = std::int8_t(counts && global);
  term.powers.replicas = std::int8_t(!counts && global);
  return one(term);
}

// One element of the sizes, as shape(x)[0] takes.
CountTerms CountWalk::picked_size(const Node& node, std::int8_t axis) const {
  const auto* slice = node.attrs.get_if<SliceAttrs>();
  if (!slice) return node.op->linearity == Linearity::kSum ? of(node.inputs[0]) : unknown();
  const Ints &from = slice->begin, &to = slice->end;
  if (from.size() != 1 || to.size() != 1 || to[0] != from[0] + 1) return unknown();
  CountTerm term;
  term.varying = from[0] == axis;
  term.powers.local = std::int8_t(term.varying);
  return one(term);
}

CountTerms CountWalk::all_reduced(NodeId index) const {
  const Node& node = graph_.nodes[index];
  const CountTerms& operand = of(node.inputs[0]);
  const bool mean = node.attrs.as<AllReduceAttrs>().op == ReduceOp::kMean;
  CountTerms result;
  result.nonlinear = operand.nonlinear;
  for (CountTerm term : operand.terms) {
    if (term.varying && term.powers.local == 1) {
      term.powers.global = std::int8_t(term.powers.global + 1);
      if (mean) term.origin = index;
    } else if (!term.varying || term.powers.local == 0) {
      term.powers.replicas = std::int8_t(term.powers.replicas + 1);
      term.means |= term.varying;
      term.repeated |= !term.varying;
      if (!term.varying) term.origin = index;
    } else {
      return unknown(nonlinear_of(operand, term.variable ? term.origin : kNoNode));
    }
    if (mean) term.powers.replicas = std::int8_t(term.powers.replicas - 1);
    term.powers.local = 0;
    term.varying = false;
    result.add(term);
  }
  return result;
}

void CountWalk::sum_examples(const Node& node, CountTerms& result) const {
  const Linearity linearity = node.op->linearity;
  const bool added = linearity == Linearity::kSum || linearity == Linearity::kProduct;
  CountTerms summed;
  for (CountTerm term : result.terms) {
    if (added) term.powers.local = std::int8_t(term.powers.local + 1);
    term.varying = true;
    summed.add(term);
  }
  summed.nonlinear = result.nonlinear;
  result = summed;
}

}  // namespace samegrad
