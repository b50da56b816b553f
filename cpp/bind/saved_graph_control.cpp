#include "bind/saved_graph_control.h"

#include <algorithm>

#include "base/error.h"
#include "bind/saved_graph.h"
#include "ir/builder.h"
#include "ops/control.h"
#include "ops/gradient_rule.h"
#include "ops/stacked_iterations.h"

namespace samegrad {
namespace {

template <class... Parts>
void require(bool holds, const OpDef& op, const Parts&... parts) {
  SG_CHECK_VALUE(holds, kSavedModel, "the graph of a function is damaged: '", op.name, "' ",
                 parts..., "; save the model again.");
}

// Equal as far as the symbols know: of any sizes, not of those at hand.
bool alike(const Symbols& symbols, const ValueType& a, const ValueType& b) {
  if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank() || a.batch.axis != b.batch.axis) {
    return false;
  }
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    if (size_of(symbols, a, axis) != size_of(symbols, b, axis)) return false;
  }
  return !a.batched() ||
         size_of(symbols, a.batch.rows_per_example) == size_of(symbols, b.batch.rows_per_example);
}

bool alike(const Symbols& symbols, const std::vector<ValueType>& a,
           const std::vector<ValueType>& b) {
  return std::ranges::equal(
      a, b, [&](const ValueType& x, const ValueType& y) { return alike(symbols, x, y); });
}

std::vector<ValueType> argument_types(const Graph& region) {
  std::vector<ValueType> types(region.arguments.size());
  for (const ValueInfo& info : region.values) {
    if (info.source == Source::kArgument) types[info.argument()] = info.type;
  }
  return types;
}

bool is_between(std::int64_t number, std::int64_t low, std::size_t high) {
  return number >= low && number <= std::int64_t(high);
}

// Sums of counts of values; absent where one of them is not positive.
std::optional<std::size_t> sum_of(const Ints& counts, std::size_t most) {
  std::size_t sum = 0;
  for (std::int64_t count : counts) {
    if (!is_between(count, 1, most)) return std::nullopt;
    sum += std::size_t(count);
    if (sum > most) return std::nullopt;
  }
  return sum;
}

// The last arguments of a region are the last operands of its node.
void check_captured(const OpDef& op, const Graph& graph, const Values& inputs, const Graph& region,
                    std::size_t count) {
  const std::vector<ValueType> own = argument_types(region);
  require(count <= inputs.size() && count <= own.size(), op, "has a body of other operands");
  for (std::size_t i = 1; i <= count; ++i) {
    const ValueType& given = graph.type(inputs[inputs.size() - i]);
    require(alike(graph.symbols, own[own.size() - i], given), op,
            "has a body of operands of other types");
  }
}

void check_branches(const OpDef& op, const Graph& graph, const Values& inputs,
                    std::span<const GraphPtr> regions) {
  for (const GraphPtr& region : regions) {
    require(region->arguments.size() + 1 == inputs.size(), op, "has a branch of other operands");
    check_captured(op, graph, inputs, *region, region->arguments.size());
    require(!region->outputs.empty(), op, "has a branch without a result");
  }
}

void check_rule(const OpDef& op, const Graph& graph, const Values& inputs, const Attrs& attrs,
                const Graph& region) {
  const auto& rule = attrs.as<GradientRuleAttrs>();
  require(is_between(rule.results, 0, inputs.size()), op, "is the rule of other results");
  const auto results = std::size_t(rule.results);
  const std::size_t arguments = region.arguments.size();
  require(arguments >= results && arguments - results <= inputs.size() - results, op,
          "has a rule of other operands");
  check_captured(op, graph, inputs, region, arguments - results);
  const std::vector<ValueType> own = argument_types(region);
  for (std::size_t i = 0; i < results; ++i) {
    require(alike(graph.symbols, own[i], graph.type(inputs[i])), op,
            "has a rule of results of other types");
  }
  require(rule.given.size() == region.outputs.size(), op, "has a rule with other gradients");
  for (std::size_t i = 0; i < rule.given.size(); ++i) {
    require(is_between(rule.given[i], rule.results, inputs.size() - 1), op, "has no such operand");
    const ValueType& operand = graph.type(inputs[std::size_t(rule.given[i])]);
    const ValueType& made = region.type(region.outputs[i]);
    require(made.dtype == operand.dtype && made.shape.rank() == operand.shape.rank(), op,
            "has gradients of other types");
  }
}

}  // namespace

Histories Histories::of_region(const Values& inputs, const Attrs& attrs,
                               std::size_t arguments) const {
  Histories inside;
  inside.unknown_ = unknown_ - (std::int64_t(1) << 20);
  const auto* replay = attrs.get_if<ReplayAttrs>();  // a body has the entries of what it reads
  const std::size_t read = replay ? std::min(replay->entries.size(), inputs.size()) : 0;
  for (std::size_t i = 0; i < std::min(arguments, inputs.size() - read); ++i) {
    if (const HistoryType* entry = find(inputs[inputs.size() - 1 - i])) {
      inside.arguments_[arguments - 1 - i] = *entry;
    }
  }
  return inside;
}

void Histories::enter(std::size_t argument, Value value) {
  const auto known = arguments_.find(argument);
  if (known != arguments_.end()) entries_[value] = known->second;
}

const Histories::HistoryType* Histories::find(Value value) const {
  const auto known = entries_.find(value);
  return known == entries_.end() ? nullptr : &known->second;
}

void Histories::check_none(const Values& values) const {
  for (Value value : values) {
    SG_CHECK_VALUE(!find(value), kSavedModel,
                   "the graph of a function is damaged: it returns the history of a loop; save the "
                   "model again.");
  }
}

// Histories are operands of what reads them, and captured by bodies; of nothing else.
void Histories::check_operands(const OpDef& op, const Values& inputs, const Attrs& attrs,
                               std::size_t captured) const {
  const auto* replay = attrs.get_if<ReplayAttrs>();
  const std::size_t read = replay                             ? replay->entries.size()
                           : attrs.get_if<StackRoundsAttrs>() ? 1
                                                              : 0;
  require(read <= inputs.size(), op, "reads more histories than it has operands");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const HistoryType* entry = find(inputs[i]);
    if (i < read) {
      require(entry != nullptr, op, "reads the history of no loop");
      const std::size_t values = entry->types.size();
      require(!replay || replay->entries[i] == std::int64_t(values), op, "reads other entries");
    } else if (entry && i + captured < inputs.size()) {
      require(false, op, "computes with the history of a loop");
    }
  }
}

void Histories::check_stack(const OpDef& op, const Graph& graph, const Values& inputs,
                            const Attrs& attrs) const {
  const auto& stack = attrs.as<StackRoundsAttrs>();
  const HistoryType& entry = *find(inputs[0]);
  StackRoundsAttrs own;
  for (std::size_t i = 0; i < entry.types.size(); ++i) {
    const bool known = i < stack.placements.size() &&
                       is_between(stack.placements[i], 0, std::size_t(Placement::kVarying));
    require(known, op, "stacks other entries");
    own.add(entry.types[i], Placement(stack.placements[i]));
  }
  const bool same = stack.dtypes == own.dtypes && stack.ranks == own.ranks &&
                    stack.sizes.size() == own.sizes.size() &&
                    stack.examples.size() == own.examples.size() &&
                    stack.placements == own.placements;
  require(same, op, "stacks entries of other types");
  for (std::size_t i = 0; i < own.sizes.size(); ++i) {
    const bool equal =
        size_of(graph.symbols, stack.sizes[i]) == size_of(graph.symbols, own.sizes[i]);
    require(equal, op, "stacks entries of other sizes");
  }
  for (std::size_t i = 0; i < own.examples.size(); ++i) {
    const bool equal =
        size_of(graph.symbols, stack.examples[i]) == size_of(graph.symbols, own.examples[i]);
    require(equal, op, "stacks entries of other examples");
  }
  require(size_of(graph.symbols, stack.rounds) == size_of(graph.symbols, entry.rounds), op,
          "stacks other rounds");
}

void Histories::check_rounds(const OpDef& op, const Graph& graph, const Values& inputs,
                             const Attrs& attrs, std::span<const GraphPtr> regions) const {
  const auto& rounds = attrs.as<RoundsAttrs>();
  const auto* replay = attrs.get_if<ReplayAttrs>();
  const std::size_t histories = replay ? replay->entries.size() : 0;
  require(is_between(rounds.variables, 0, inputs.size() - histories), op, "has other variables");
  const auto variables = std::size_t(rounds.variables);
  std::vector<ValueType> entries;
  for (std::size_t i = 0; i < histories; ++i) {
    const std::vector<ValueType>& own = find(inputs[i])->types;
    entries.insert(entries.end(), own.begin(), own.end());
    const bool same = size_of(graph.symbols, find(inputs[i])->rounds) ==
                      size_of(graph.symbols, find(inputs[0])->rounds);
    require(same, op, "reads histories of other rounds");
  }
  const auto yields = replay ? sum_of(replay->yields, 1 << 16) : 0;
  require(yields.has_value(), op, "makes entries of no values");
  for (const GraphPtr& region : regions) {
    const std::size_t count = inputs.size() - histories;
    require(region->arguments.size() == entries.size() + count, op, "has a body of other operands");
    check_captured(op, graph, inputs, *region, count);
    const std::vector<ValueType> own = argument_types(*region);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      require(alike(graph.symbols, own[i], entries[i]), op, "has a body of entries of other types");
    }
  }
  if (regions.size() > 1) {
    require(regions[0]->outputs.size() == 1, op, "has a condition of other results");
  }
  const Graph& body = *regions.back();
  require(body.outputs.size() == variables + *yields, op, "has a body of other results");
  for (std::size_t i = 0; i < variables; ++i) {
    require(alike(graph.symbols, body.type(body.outputs[i]), graph.type(inputs[histories + i])), op,
            "has variables that change their types");
  }
}

void Histories::check(const OpDef& op, const Graph& graph, const Values& inputs, const Attrs& attrs,
                      std::span<const GraphPtr> regions) const {
  check_arity(op, inputs.size());
  check_regions(op, regions.size());
  std::size_t captured = 0;
  for (const GraphPtr& region : regions) captured = std::max(captured, region->arguments.size());
  check_operands(op, inputs, attrs, captured);
  if (attrs.get_if<StackRoundsAttrs>()) return check_stack(op, graph, inputs, attrs);
  if (attrs.get_if<RoundsAttrs>()) return check_rounds(op, graph, inputs, attrs, regions);
  if (attrs.get_if<CondAttrs>()) return check_branches(op, graph, inputs, regions);
  if (attrs.get_if<GradientRuleAttrs>()) {
    return check_rule(op, graph, inputs, attrs, *regions[0]);
  }
  if (!op.has(kStacksResiduals) || graph.type(inputs[0]).shape.rank() > 0) return;
  for (Value input : inputs) {  // a sum of histories
    const HistoryType *first = find(inputs[0]), *own = find(input);
    const bool same = first && own && alike(graph.symbols, first->types, own->types) &&
                      size_of(graph.symbols, first->rounds) == size_of(graph.symbols, own->rounds);
    require(same, op, "adds histories of different loops");
  }
}

void Histories::add(const Graph& graph) {
  const Node& node = graph.nodes.back();
  if (!node.op->has(kStacksResiduals)) return;
  if (!node.attrs.get_if<RoundsAttrs>()) {
    if (const HistoryType* sum = find(node.inputs[0])) {
      entries_[node.outputs[0]] = *sum;
      return;
    }
    HistoryType entry{{}, graph.type(node.inputs[0]).shape[0]};
    for (Value input : node.inputs) entry.types.push_back(entry_type(graph.type(input)));
    entries_[node.outputs[0]] = std::move(entry);
    return;
  }
  const auto* replay = node.attrs.get_if<ReplayAttrs>();
  const bool known = replay && !replay->entries.empty();
  // A number of its own, because the count of the loop's iterations is unknown before the run.
  const std::int64_t rounds = known ? find(node.inputs[0])->rounds : --unknown_;
  const Graph& body = *node.regions.back();
  const auto of = [&](std::span<const Value> results) {
    HistoryType entry{{}, rounds};
    for (Value result : results) entry.types.push_back(body.type(result));
    return entry;
  };
  const ControlSignature at(node);
  entries_[node.outputs[at.carried]] = of(std::span(body.outputs).first(at.carried));
  for (std::size_t h = 0; replay && h < replay->yields.size(); ++h) {
    entries_[node.outputs[at.carried + 1 + h]] = of(at.yielded(body, h));
  }
}

}  // namespace samegrad
