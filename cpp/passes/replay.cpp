#include "passes/replay.h"

#include <algorithm>

#include "base/error.h"
#include "ir/located_error.h"
#include "ir/placement.h"
#include "ops/control.h"
#include "ops/gradient_rule.h"
#include "ops/random_attributes.h"
#include "ops/stacked_iterations.h"

namespace samegrad {
namespace {

Symbol without_counts(Symbol symbol) {
  symbol.fixed = false;
  return symbol;
}

// A history of iterations: where the values of an entry are, and whether replicas make different
// numbers of iterations.
struct HistoryPlacement {
  std::vector<Placement> entries;
  bool varying = false;
};

// The number of operands, the first ones, that are histories whose entries the iterations take.
std::size_t histories_of(const Node& node) {
  const auto* replay = node.attrs.get_if<ReplayAttrs>();
  return replay ? replay->entries.size() : 0;
}

// The history of what the iterations of a loop carried, or of what they made.
HistoryPlacement history_of_iterations(const Node& loop, std::size_t result) {
  const Graph& iteration = body(loop.regions);
  const ControlSignature at(loop);
  HistoryPlacement history{{}, loop.attrs.as<ControlAttrs>().varying};
  if (result == at.carried) {
    for (std::size_t i = at.argument; i < at.outer_argument; ++i) {
      history.entries.push_back(iteration.arguments.at(i).placement);
    }
    return history;
  }
  for (const Value value : at.yielded(iteration, result - at.carried - 1)) {
    const Placement placement = iteration.placement(value);
    history.entries.push_back(history.varying ? Placement::kVarying : placement);
  }
  return history;
}

HistoryPlacement history_of(const Graph& graph, Value value) {
  const Node* node = graph.producer(value);
  if (!node || !node->op->has(kStacksResiduals)) {
    fail(ErrorKind::kNotImplemented, "saved_model",
         "the gradient of a loop inside a branch of a loaded function runs on one replica: got ",
         graph.replicas, "; take it outside of strategy.run.");
  }
  if (node->attrs.get_if<RoundsAttrs>()) {
    return history_of_iterations(*node, std::size_t(graph.values[value].result));
  }
  HistoryPlacement history;
  if (graph.type(node->inputs[0]).shape.rank() == 0) {  // a sum of histories
    history = history_of(graph, node->inputs[0]);
    const HistoryPlacement other = history_of(graph, node->inputs[1]);
    for (std::size_t i = 0; i < history.entries.size(); ++i) {
      history.entries[i] = joined(history.entries[i], other.entries.at(i));
    }
    return history;
  }
  for (Value array : node->inputs) {
    history.entries.push_back(entry_placement(graph.type(array), graph.placement(array)));
  }
  const std::int64_t iterations = graph.type(node->inputs[0]).shape[0];
  history.varying = graph.replicas > 1 && differs_between_replicas(graph.symbols, iterations);
  return history;
}

// The attributes of what stacks the entries of a history, placed as these are.
Attrs with_placements(const Node& node, const Attrs& attrs, const HistoryPlacement& history) {
  const auto& stack = attrs.as<StackRoundsAttrs>();
  Ints placements;
  for (std::size_t i = 0; i < history.entries.size(); ++i) {
    const bool kept = stack.examples.at(3 * i) >= 0 || history.entries[i] == Placement::kReplicated;
    const Placement placement = kept && !history.varying ? history.entries[i] : Placement::kVarying;
    placements.push_back(std::int64_t(placement));
  }
  AttrDraft draft(node.op->name, node.op->attrs);
  (void)draft.take(attrs);
  draft.set("placements", std::move(placements));
  return draft.finish();
}

// True if the core ops have the bits of the op. Their derivative may have others than its own,
// and in 16 bits each of them rounds.
bool is_decomposed(const OpDef& op, const Graph& graph, const Values& inputs) {
  const auto widened = [&](Value input) { return is_storage_dtype(graph.type(input).dtype); };
  return op.has(kComposite) && !op.vjp && std::ranges::none_of(inputs, widened);
}

// The attributes of a draw by its ordinal in the trace, which begins with another one.
Attrs with_first_draw(const Node& node, const Attrs& attrs, std::int64_t first) {
  const std::optional<std::int64_t> ordinal = ordinal_of(attrs);
  if (!ordinal || first == 0) return attrs;
  AttrDraft draft(node.op->name, node.op->attrs);
  (void)draft.take(attrs);
  draft.set("ordinal", *ordinal + first);
  return draft.finish();
}

// The attributes of control flow, whose condition may differ between the replicas or not.
Attrs with_varying(const Node& node, const Attrs& attrs, bool varying) {
  if (!node.attrs.get_if<ControlAttrs>()) return attrs;
  AttrDraft draft(node.op->name, node.op->attrs);
  (void)draft.take(attrs);
  draft.set("varying", varying);
  return draft.finish();
}

}  // namespace

std::optional<std::int64_t> ordinal_of(const Attrs& attrs) {
  const auto* draw = attrs.get_if<DrawAttrs>();
  if (!draw || draw->ordinal >= kOfDataFunction) return std::nullopt;
  for (const AttrSpec& field : attrs.schema()->fields) {
    if (std::string_view(field.name) == "ordinal") return draw->ordinal;
  }
  return std::nullopt;
}

Replay::Replay(const Graph& from, Builder& to, Ops rows)
    : from_(from),
      to_(to),
      rows_(rows),
      sizes_(from.symbols.size()),
      map_(from.values.size(), kNoValue) {}

Replay::Replay(const Graph& from, Builder& to, const Replay& outer)
    : Replay(from, to, outer.rows_) {
  first_draw_ = outer.first_draw_;
  share(outer, *this);
}

Values Replay::operator()(const std::vector<Value>& old) const {
  Values fresh;
  for (Value value : old) fresh.push_back(map_[value]);
  return fresh;
}

void Replay::run_whole() {
  run();
  Graph& made = to_.graph();
  made.outputs = (*this)(from_.outputs);
  for (const StateWrite& write : from_.writes) {
    made.writes.push_back({write.variable, map_[write.value]});
  }
  for (const StateWrite& read : from_.rereads) {
    made.rereads.push_back({read.variable, map_[read.value]});
  }
  made.locations = from_.locations;
}

void Replay::run() {
  const auto counts = [](const CallRange& call) {
    return call.end.exists() && call.begin < call.end;
  };
  for (NodeId n : from_.nodes.ids()) {
    for (const CallRange& call : from_.calls) {
      if (call.begin == n && counts(call)) to_.begin_call(call.run);
    }
    add(from_.nodes[n]);
    for (const CallRange& call : from_.calls) {
      if (call.end == n + 1 && counts(call)) to_.end_call();
    }
  }
}

void Replay::add(const Node& node) {
  const Values inputs = (*this)(node.inputs);
  const NodeId first = to_.graph().nodes.next_id();
  Values outputs;
  if (rows_ == Ops::kCore && is_decomposed(*node.op, to_.graph(), inputs)) {
    outputs = node.op->decompose({to_, node.attrs, inputs, {}, {}});
  } else {
    outputs = apply(node, inputs);
  }
  for (NodeId n = first; n < to_.graph().nodes.next_id(); ++n) {
    Node& made = to_.graph().nodes[n];
    if (node.location >= 0) made.location = node.location;
    if (node.derivative) made.derivative = true;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) map_[node.outputs[i]] = outputs[i];
}

Values Replay::apply(const Node& node, const Values& inputs) {
  try {
    Regions made = regions(node, inputs);
    return to_.apply(*node.op, inputs, std::move(made.attrs), std::move(made.graphs));
  } catch (const Error& error) {
    LocatedError located(error, node);
    if (std::size_t(node.location) < from_.locations.size()) located.find_line(from_.locations);
    throw located;
  }
}

Replay::Regions Replay::regions(const Node& node, const Values& inputs) {
  Regions made{node.attrs.with_integers([this](std::int64_t number) { return dim(number); }), {}};
  made.attrs = with_first_draw(node, made.attrs, first_draw_);
  const bool same = to_.graph().replicas == from_.replicas;
  if (!same && node.attrs.get_if<StackRoundsAttrs>()) {
    made.attrs = with_placements(node, made.attrs, history_of(to_.graph(), inputs[0]));
  }
  if (node.regions.empty()) return made;
  if (same) {
    for (const GraphPtr& graph : node.regions) {
      std::vector<Placement> arguments;
      for (const Argument& argument : graph->arguments) arguments.push_back(argument.placement);
      made.graphs.push_back(region(*graph, arguments));
    }
    return made;
  }
  std::vector<Placement> carried;
  for (std::size_t i = 0; i < carried_values(node); ++i) {
    carried.push_back(to_.graph().placement(inputs.at(histories_of(node) + i)));
  }
  bool varying = false;
  do {
    made.graphs.clear();
    for (const GraphPtr& graph : node.regions) {
      made.graphs.push_back(region(*graph, placements(node, *graph, inputs, carried)));
    }
    varying = is_varying(node, inputs, *made.graphs[0]);
  } while (join(made.graphs, varying, carried));
  made.attrs = with_varying(node, made.attrs, varying);
  return made;
}

// True if some replicas take another branch, or make other iterations.
bool Replay::is_varying(const Node& node, const Values& inputs, const Graph& first) const {
  if (node.attrs.get_if<WhileAttrs>()) return first.varying(first.outputs[0]);
  if (node.attrs.get_if<CondAttrs>()) return to_.graph().varying(inputs[0]);
  return histories_of(node) > 0 && history_of(to_.graph(), inputs[0]).varying;
}

// Joins what the iterations carry with what they make of it; true: the iterations must be replayed.
bool Replay::join(const std::vector<GraphPtr>& graphs, bool varying,
                  std::vector<Placement>& carried) const {
  bool again = false;
  const Graph& iteration = *graphs.back();
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const Placement after =
        varying ? Placement::kVarying : iteration.placement(iteration.outputs[i]);
    const Placement either = joined(carried[i], after);
    again = again || either != carried[i];
    carried[i] = either;
  }
  return again;
}

// The placements of a region's arguments in a program of more replicas than it was traced for:
// entries of histories, what iterations carry, and the last operands of the node.
std::vector<Placement> Replay::placements(const Node& node, const Graph& region,
                                          const Values& inputs,
                                          const std::vector<Placement>& carried) const {
  const Graph& to = to_.graph();
  std::vector<Placement> found;
  for (std::size_t k = 0; k < histories_of(node); ++k) {
    const HistoryPlacement history = history_of(to, inputs[k]);
    found.insert(found.end(), history.entries.begin(), history.entries.end());
  }
  found.insert(found.end(), carried.begin(), carried.end());
  if (const auto* rule = node.attrs.get_if<GradientRuleAttrs>()) {
    for (std::size_t i = 0; i < std::size_t(rule->results); ++i) {
      // The cotangent of a result that is equal on all replicas is a part of a sum.
      const Placement of_result = to.placement(inputs.at(i));
      const bool part = of_result == Placement::kReplicated && to.replicas > 1;
      found.push_back(part ? Placement::kPartial : of_result);
    }
  }
  const std::size_t count = region.arguments.size();
  for (std::size_t i = found.size(); i < count; ++i) {
    found.push_back(to.placement(inputs.at(inputs.size() - (count - i))));
  }
  return found;
}

GraphPtr Replay::region(const Graph& graph, const std::vector<Placement>& arguments) {
  Graph made;
  Builder builder(made);
  made.replicas = to_.graph().replicas;
  made.variables = graph.variables;
  made.symbols = symbols();
  Replay inside(graph, builder, *this);
  for (std::size_t s = 0; s < graph.symbols.size(); ++s) {
    const Symbol& symbol = graph.symbols[s];
    if (symbol.kind != Symbol::Kind::kInput || inside.sizes_[s]) continue;
    inside.set_size(int(s), Size::of_symbol(made.add_symbol(symbol)));
  }
  for (Placement placement : arguments) made.arguments.push_back({placement});
  made.constants = graph.constants;
  for (Value v : graph.values.ids()) {
    ValueInfo info = graph.values[v];
    if (info.source == Source::kNode) continue;
    info.type = inside.type(info.type);
    if (info.source == Source::kArgument) info.placement = arguments.at(info.argument());
    inside.map_[v] = made.values.push_back(info);
  }
  inside.run();
  made.outputs = inside(graph.outputs);
  for (const StateWrite& read : graph.rereads) {
    made.rereads.push_back({read.variable, inside(read.value)});
  }
  made.locations = graph.locations;
  adopt(inside, made.symbols);
  return std::make_shared<const Graph>(std::move(made));
}

// The program knows the symbols that its region made, and what it took for granted.
void Replay::adopt(const Replay& inside, const Symbols& region) {
  Symbols& own = symbols();
  for (std::size_t s = 0; s < region.size(); ++s) {
    if (s == own.size()) own.push_back(region[s]);
    if (region[s].fixed) own[s].fixed = true;
    own[s].equal = region[s].equal;
  }
  own.guards = region.guards;
  own.replicas = region.replicas;
  share(inside, *this);
}

// Shares the sizes of the symbols that both graphs have. A region may have some of its own behind
// those that it found.
void Replay::share(const Replay& known, Replay& asks) {
  for (std::size_t s = 0; s < std::min(known.sizes_.size(), asks.sizes_.size()); ++s) {
    if (known.sizes_[s] && known.from_.symbols[s].same_rule(asks.from_.symbols[s])) {
      asks.sizes_[s] = known.sizes_[s];
    }
  }
}

const Size& Replay::size(int symbol) {
  std::optional<Size>& known = sizes_.at(std::size_t(symbol));
  if (known) return *known;
  const Symbol& s = from_.symbols[std::size_t(symbol)];
  const Size size = made(s);
  if (s.fixed) {
    for (int part : size.symbols()) symbols()[std::size_t(part)].fixed = true;
  }
  return *(known = size);
}

Size Replay::made(const Symbol& symbol) {
  switch (symbol.kind) {
    case Symbol::Kind::kLength:
    case Symbol::Kind::kInput:
      fail(ErrorKind::kValue, "program", "a size that comes from outside is that of no argument.");
    case Symbol::Kind::kSize:
      return symbol.size.with_sizes([this](int part) { return size(part); });
    case Symbol::Kind::kSum:
      return sum(symbol);
    default:
      return part(symbol);
  }
}

Size Replay::sum(const Symbol& symbol) {
  Symbol own = without_counts(symbol);
  Size all;
  bool only_symbols = true;
  for (int& part : own.parts) {
    const Size& found = size(part);
    all = all + found;
    only_symbols = only_symbols && found.symbol();
    part = found.symbol().value_or(0);
  }
  return only_symbols ? Size::of_symbol(derived_symbol(symbols(), std::move(own))) : all;
}

// A symbol that is made of one other count.
Size Replay::part(const Symbol& symbol) {
  const Size whole = size(symbol.parts[0]);
  if (const auto n = whole.number()) {
    if (symbol.kind == Symbol::Kind::kQuotient) return *n / symbol.step;
    if (symbol.kind == Symbol::Kind::kGlobal) return *n * to_.graph().replicas;
    return slice_range(symbol.begin, symbol.end, symbol.step, *n).count;
  }
  Symbol own = without_counts(symbol);
  own.parts = {int(dim_of(symbols(), whole) - kSymbols)};
  return Size::of_symbol(derived_symbol(symbols(), std::move(own)));
}

std::int64_t Replay::dim(std::int64_t dim) {
  if (!is_symbolic(dim) || std::size_t(dim - kSymbols) >= from_.symbols.size()) return dim;
  const int symbol = int(dim - kSymbols);
  const Symbol& known = from_.symbols[std::size_t(symbol)];
  // A number of examples is not a size.
  if (known.kind == Symbol::Kind::kSize && known.size.number()) return kSymbols + count(symbol);
  return dim_of(symbols(), size(symbol));
}

int Replay::count(int symbol) {
  const Size found = size(symbol);
  if (const auto own = found.symbol()) return *own;
  Symbol made;
  made.kind = Symbol::Kind::kSize;
  made.size = found;
  return derived_symbol(symbols(), std::move(made));
}

ValueType Replay::type(ValueType type) {
  for (int axis = 0; axis < type.shape.rank(); ++axis) type.shape[axis] = dim(type.shape[axis]);
  if (type.batched()) {
    type.batch.rows_per_example = dim(type.batch.rows_per_example);
    type.batch.symbol = count(type.batch.symbol);
  }
  return type;
}

}  // namespace samegrad
