#include "passes/guarded_variants.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/control.h"

namespace samegrad {
namespace {

std::int32_t line_in(Graph& graph, const std::string& line) {
  if (line.empty()) return -1;
  const auto at = std::ranges::find(graph.locations, line);
  const auto index = std::int32_t(at - graph.locations.begin());
  if (at == graph.locations.end()) graph.locations.push_back(line);
  return index;
}

class Branch {
 public:
  Branch(const GuardedVariants& branches, const std::vector<GuardedValue*>& choices)
      : branches_(branches),
        numbers_(branches.numbers),
        choices_(choices),
        line_(branches.line),
        needed_(numbers_.graphs()) {
    for (std::size_t g = 0; g < numbers_.graphs(); ++g) find_needed(g);
  }

  void add_to(Builder& to, const std::function<Value(int)>& given) {
    Values operands;
    for (int number : captured_) operands.push_back(given(number));
    const Values made = choose(to, 0, numbers_.graphs(), operands);
    for (std::size_t i = 0; i < choices_.size(); ++i) choices_[i]->value = made[i];
  }

 private:
  // Nodes of a trace that the choices need, and what they read of that which is common.
  void find_needed(std::size_t g) {
    const Graph& graph = numbers_.graph(g);
    needed_[g].assign(graph.nodes.size(), false);
    PerValue<bool> seen(graph.values.size(), false);
    Values open;
    const auto need = [&](int number) {
      const Value value = numbers_.at(g, number);
      if (is_inside(number)) return;
      if (numbers_.common(number) && !is_history(number)) {
        if (std::ranges::find(captured_, number) == captured_.end()) captured_.push_back(number);
      } else if (!seen[value]) {
        seen[value] = true;
        open.push_back(value);
      }
    };
    for (const GuardedValue* choice : choices_) need(choice->numbers[g]);
    while (!open.empty()) {
      const NodeId index = graph.values[open.back()].node();
      open.pop_back();
      needed_[g][index] = true;
      for (Value input : graph.nodes[index].inputs) need(numbers_.of(g, input));
    }
  }

  // Constants that branches have of their own. Numbers of the whole program stay outside: programs
  // that differ in them alone share what is compiled.
  bool is_inside(int number) const {
    const bool shared = numbers_.common(number) && numbers_.type(number).shape.rank() == 0;
    return numbers_.is_constant(number) && !shared;
  }

  // The stacked residuals of a loop stay in the graph of the loop.
  bool is_history(int number) const {
    const ValueInfo& info = numbers_.info(number);
    if (info.source != Source::kNode) return false;
    const Node& node = numbers_.graph(numbers_.home(number)).nodes[info.node()];
    if (!node.op->has(kStacksResiduals)) return false;
    const bool history = std::size_t(info.result) >= carried_values(node);
    if (history && holds(node, kCollective | kSideEffect)) {
      fail(ErrorKind::kNotImplemented, node.op->name,
           "the derivative of a loop with collectives is "
           "taken in a way that differs with the number of examples (",
           line_, "); give all replicas equally many examples (padding, drop_remainder=True).");
    }
    return history;
  }

  std::vector<int> replicas_of(std::size_t first, std::size_t last) const {
    std::vector<int> replicas;
    for (std::size_t g = first; g < last; ++g) {
      const std::vector<int>& own = numbers_.graph(g).symbols.replicas;
      replicas.insert(replicas.end(), own.begin(), own.end());
    }
    std::ranges::sort(replicas);
    return replicas;
  }

  // The results for the traces [first, last), halved until one is left.
  Values choose(Builder& to, std::size_t first, std::size_t last, const Values& operands) {
    if (first + 1 == last) return compute(to, first, operands);
    const std::size_t middle = (first + last) / 2;
    const auto yes = body(to.graph(), first, middle, operands);
    const auto no = body(to.graph(), middle, last, operands);
    const std::vector<int> replicas = replicas_of(first, middle);
    const Value ours = to("trace_of_count", {}, TraceAttrs(Ints(replicas.begin(), replicas.end())));
    to.graph().nodes.back().location = line_in(to.graph(), line_);
    Values inputs = {ours};
    inputs.insert(inputs.end(), operands.begin(), operands.end());
    const Values results =
        to.apply(OpRegistry::instance().get("cond"), inputs, CondAttrs{{true}}, {yes, no});
    to.graph().nodes.back().location = line_in(to.graph(), line_);
    return results;
  }

  GraphPtr body(Graph& outer, std::size_t first, std::size_t last, const Values& operands) {
    auto graph = std::make_shared<Graph>();
    graph->replicas = outer.replicas;
    graph->symbols.assign(outer.symbols.begin(), outer.symbols.end());
    graph->symbols.replicas = replicas_of(first, last);
    Values arguments;
    for (Value operand : operands) {
      arguments.push_back(graph->add_argument(outer.type(operand), outer.placement(operand)));
    }
    Builder b(*graph);
    graph->outputs = choose(b, first, last, arguments);
    adopt_symbols(outer, *graph);
    return graph;
  }

  Values compute(Builder& to, std::size_t g, const Values& operands) {
    const Graph& from = numbers_.graph(g);
    std::map<int, Value> known;
    for (std::size_t i = 0; i < operands.size(); ++i) known[captured_[i]] = operands[i];
    const auto value_of = [&](int number) {
      const auto at = known.find(number);
      if (at != known.end()) return at->second;
      const ValueInfo& info = numbers_.info(number);
      const Graph& home = numbers_.graph(numbers_.home(number));
      return known[number] =
                 to.graph().add_constant(home.constants[info.constant()], info.type.batch);
    };
    for (NodeId n : from.nodes.ids()) {
      if (!needed_[g][n]) continue;
      const Node& node = from.nodes[n];
      Values inputs;
      for (Value input : node.inputs) inputs.push_back(value_of(numbers_.of(g, input)));
      const Values made = append(to, g, n, inputs);
      for (std::size_t i = 0; i < made.size(); ++i)
        known[numbers_.of(g, node.outputs[i])] = made[i];
    }
    Values results;
    for (const GuardedValue* choice : choices_) {
      results.push_back(as_choice(to, value_of(choice->numbers[g]), choice->type));
    }
    return results;
  }

  static Value own(Builder& to, Value value, std::vector<std::int64_t> shape) {
    return to("of_trace", {value}, OfTraceAttrs{.shape = std::move(shape)});
  }

  Values append(Builder& to, std::size_t g, NodeId index, const Values& inputs) const {
    const Graph& from = numbers_.graph(g);
    const Node& node = numbers_.node(g, index);
    const auto rows = branches_.draws[g].find(index);
    if (rows == branches_.draws[g].end()) return append_node(to, from, node, inputs);
    return {draw_rows(to, from, node, inputs, rows->second)};
  }

  // Rows of one stream, of which each replica draws those behind the ones of the replicas before.
  static Value draw_rows(Builder& to, const Graph& from, const Node& node, Values inputs,
                         std::int64_t rows) {
    Node drawn = node;
    Value& operand = inputs.back();  // before it there may be a key
    if (node.op->reads(inputs.size() - 1)) {
      operand = to("zeros", {}, ZerosAttrs{.shape = node.attrs.as<DrawAttrs>().shape});
      drawn.op = &OpRegistry::instance().get(node.op->name + "_like");
    }
    const ValueType type = to.type(operand);
    if (type.batched()) operand = to("as_rows", {operand});
    const Shape& shape = to.type(operand).shape;
    operand = own(to, operand, {shape.begin(), shape.end()});
    AttrDraft like(drawn.op->name, drawn.op->attrs);
    like.take(node.attrs);
    like.set("rows", rows);
    drawn.attrs = like.finish();
    const Value made = append_node(to, from, drawn, inputs)[0];
    return type.batched() ? to("as_examples", {made}, ExamplesAttrs{.axis = 0}) : made;
  }

  // The value as one of the type that the choice has.
  static Value as_choice(Builder& to, Value value, const ValueType& type) {
    if (to.type(value) == type) return value;
    if (to.type(value).batched()) value = to("as_rows", {value});
    if (to.type(value) == type) return value;
    return own(to, value, {type.shape.begin(), type.shape.end()});
  }

  const GuardedVariants& branches_;
  const ValueNumbers& numbers_;
  const std::vector<GuardedValue*>& choices_;
  const std::string& line_;
  std::vector<PerNode<bool>> needed_;
  std::vector<int> captured_;
};

}  // namespace

std::int64_t own_size(const ValueNumbers& numbers, const std::vector<Size>& sizes,
                      Symbols& symbols) {
  const auto counts = counts_of_all(symbols);
  Symbol own;
  own.traced_counts.resize(counts.size());
  own.fixed = true;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    for (int s : sizes[g].symbols()) symbols[std::size_t(s)].fixed = true;
    for (int r : numbers.graph(g).symbols.replicas) {
      own.traced_counts[std::size_t(r)] = sizes[g].value(counts[std::size_t(r)]);
    }
  }
  own.traced_count = own.traced_counts[0];
  // Counts of arguments have totals.
  const auto known = std::ranges::find_if(symbols, [&](const Symbol& symbol) {
    return symbol.kind == Symbol::Kind::kInput && symbol.traced_total < 0 &&
           symbol.traced_counts == own.traced_counts;
  });
  const std::int64_t index = known - symbols.begin();
  if (known == symbols.end()) symbols.push_back(std::move(own));
  return kSymbols + index;
}

ValueType type_of_choice(const ValueNumbers& numbers, const std::vector<std::string>& who,
                         const GuardedValue& choice, Symbols& symbols) {
  std::vector<ValueType> types;
  for (int number : choice.numbers) types.push_back(numbers.type(number));
  if (std::ranges::count(types, types[0]) == std::ssize(types)) return types[0];
  for (std::size_t g = 1; g < types.size(); ++g) {
    SG_CHECK_VALUE(
        types[g].dtype == types[0].dtype && types[g].shape.rank() == types[0].shape.rank(),
        "Strategy.run",
        "what replicas compute for their own numbers of examples must have "
        "one dtype and as many axes: got ",
        to_string(types[0]), " on ", who[0], " and ", to_string(types[g]), " on ", who[g],
        "; return what has the same dtype and number of axes for any number of examples.");
  }
  ValueType type{types[0].dtype, {}, {}};
  for (int axis = 0; axis < types[0].shape.rank(); ++axis) {
    std::vector<Size> sizes;
    for (const ValueType& own : types) sizes.push_back(size_of(symbols, own, axis));
    const bool same = std::ranges::count(sizes, sizes[0]) == std::ssize(sizes);
    type.shape.push_back(same ? dim_of(symbols, sizes[0]) : own_size(numbers, sizes, symbols));
  }
  return type;
}

void add_guarded_variants(const GuardedVariants& branches,
                          const std::vector<GuardedValue*>& choices, Builder& to,
                          const std::function<Value(int)>& given) {
  Branch(branches, choices).add_to(to, given);
}

void adopt_symbols(Graph& outer, const Graph& body) {
  for (std::size_t s = 0; s < body.symbols.size(); ++s) {
    if (s == outer.symbols.size()) outer.symbols.push_back(body.symbols[s]);
    if (body.symbols[s].fixed) outer.symbols[s].fixed = true;
  }
}

Values append_node(Builder& to, const Graph& from, const Node& node, const Values& inputs) {
  Values made = to.apply(*node.op, inputs, node.attrs, node.regions);
  Node& fresh = to.graph().nodes.back();
  fresh.derivative = node.derivative;
  fresh.location =
      node.location < 0 ? -1 : line_in(to.graph(), from.locations[std::size_t(node.location)]);
  return made;
}

}  // namespace samegrad
