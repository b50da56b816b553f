#include "passes/merge_specializations.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "ir/placement.h"
#include "ir/regions.h"
#include "ops/control.h"
#include "passes/guarded_variants.h"

namespace samegrad {
namespace {

constexpr const char* kRemedy =
    "; move it out of the branch or loop that Python runs by the number of examples, compute with "
    "samegrad.shape(x)[0] as a tensor, or give all replicas equally many examples (padding, "
    "drop_remainder=True).";

std::string listed(const std::vector<std::int64_t>& numbers) {
  std::string out;
  for (std::int64_t number : numbers) out += text(out.empty() ? "" : ", ", number);
  return out;
}

// "replica 1 (3 examples)"
std::string name_of(const Specialization& trace) {
  const std::vector<int>& replicas = trace.graph.symbols.replicas;
  const auto r = std::size_t(replicas[0]);
  std::vector<std::int64_t> counts;
  for (const Symbol& symbol : trace.graph.symbols) {
    const bool given = symbol.kind == Symbol::Kind::kInput && symbol.traced_total >= 0;
    const bool tells = given && !symbol.traced_counts.empty();
    if (tells) counts.push_back(symbol.traced_on(r));
  }
  return text(replicas.size() == 1 ? "replica " : "replicas ",
              listed({replicas.begin(), replicas.end()}), " (", listed(counts), " examples)");
}

std::string name_of(const Graph& graph, const Node& node) {
  const bool placed = node.location >= 0 && std::size_t(node.location) < graph.locations.size();
  const std::string line = placed ? graph.locations[std::size_t(node.location)] : "";
  return line.empty() ? node.op->name : text(node.op->name, " (", line, ")");
}

class SpecializationMerger {
 public:
  // `outer`: of bodies, what is known around them.
  SpecializationMerger(const std::vector<Specialization>& traces, const Symbols* outer)
      : traces_(traces), outer_(outer) {
    for (const Specialization& trace : traces_) {
      who_.push_back(name_of(trace));
      if (line_.empty()) line_ = trace.split_at;
    }
  }

  Graph run() {
    begin();
    ValueNumbers numbers(graphs(), joined_.symbols);
    numbers_ = &numbers;
    check_order();
    GuardedVariants branches{numbers, line_, rows_of_draws()};
    branches_ = &branches;
    for (Value v : graph(0).values.ids()) {  // also arguments that nobody reads
      if (graph(0).values[v].source == Source::kArgument) (void)given(numbers.of(0, v));
    }
    find_choices();
    for (int place = 0; place < ordered_effects(); ++place) {
      emit_common(place);
      emit_ordered_effect(place);
    }
    emit_common(ordered_effects());
    emit_choices(ordered_effects());
    finish();
    return std::move(joined_);
  }

 private:
  const Graph& graph(std::size_t g) const { return traces_[g].graph; }
  int ordered_effects() const { return int(numbers_->ordered_effects(0).size()); }

  std::vector<const Graph*> graphs() const {
    std::vector<const Graph*> all;
    for (const Specialization& trace : traces_) all.push_back(&trace.graph);
    return all;
  }

  [[noreturn]] void fail_other(const char* what, std::size_t g, const std::string& first,
                               const std::string& other) const {
    fail(ErrorKind::kRuntime, "Strategy.run", "replicas with different numbers of examples must ",
         "run the same ", what, " in the same order, and Python took another way by the number (",
         line_, "): got ", first, " on ", who_[0], " and ", other, " on ", who_[g], kRemedy);
  }

  struct GraphNode {
    const Graph* graph;
    const Node* node;
  };
  using GraphNodes = std::vector<GraphNode>;

  void check_order() const {
    std::vector<GraphNodes> ordered_effects, draws;
    for (std::size_t g = 0; g < traces_.size(); ++g) {
      ordered_effects.emplace_back();
      for (NodeId n : numbers_->ordered_effects(g)) {
        ordered_effects[g].push_back({&graph(g), &graph(g).nodes[n]});
      }
      draws.emplace_back();
      walk_nodes(graph(g), [&](const Graph& in, const Node& node) {
        if (node.op->has(kRandomOp)) draws[g].push_back({&in, &node});
      });
    }
    check_same("collectives and effects", ordered_effects);
    check_same("random operations", draws);
  }

  void check_same(const char* what, const std::vector<GraphNodes>& all) const {
    for (std::size_t g = 1; g < all.size(); ++g) {
      for (std::size_t i = 0; i < std::max(all[0].size(), all[g].size()); ++i) {
        const bool both = i < all[0].size() && i < all[g].size();
        if (both && agree(*all[0][i].node, *all[g][i].node)) continue;
        const auto name = [&](const GraphNodes& of) {
          return i < of.size() ? name_of(*of[i].graph, *of[i].node)
                               : text("no further one after ", i);
        };
        fail_other(what, g, name(all[0]), name(all[g]));
      }
    }
  }

  // Draws are told apart by number and seed; attributes of others are compared with the operands.
  static bool agree(const Node& a, const Node& b) {
    if (a.op != b.op || own_operands(a) != own_operands(b)) return false;
    if (!a.op->has(kRandomOp)) return true;
    const auto &x = a.attrs.as<DrawAttrs>(), &y = b.attrs.as<DrawAttrs>();
    return x.ordinal == y.ordinal && x.seed == y.seed && x.dtype == y.dtype;
  }

  std::vector<NodeId> draws_of(std::size_t g) const {
    std::vector<NodeId> draws;
    for (NodeId n : graph(g).nodes.ids()) {
      if (graph(g).nodes[n].op->has(kRandomOp)) draws.push_back(n);
    }
    return draws;
  }

  // The number of rows drawn, where it is an integer and not a symbol.
  static std::optional<std::int64_t> plain_rows(const Graph& graph, const Node& node) {
    const ValueType& type = graph.type(node.outputs[0]);
    if (type.shape.rank() == 0) return std::nullopt;
    const bool counted =
        type.batched() && (type.batch.axis != 0 || type.batch.rows_per_example != 1);
    if (counted ||
        (!node.op->reads(node.inputs.size() - 1) && is_symbolic(node.attrs.as<DrawAttrs>().rows))) {
      return std::nullopt;
    }
    return size_of(graph.symbols, type, 0).number();
  }

  // The numbers of rows of draws that are each replica's own and differ between the traces.
  std::vector<std::map<NodeId, std::int64_t>> rows_of_draws() {
    std::vector<std::map<NodeId, std::int64_t>> rows(traces_.size());
    std::vector<std::vector<NodeId>> draws;
    for (std::size_t g = 0; g < traces_.size(); ++g) draws.push_back(draws_of(g));
    const auto fewer = [](const auto& a, const auto& b) { return a.size() < b.size(); };
    const std::size_t count = std::ranges::min_element(draws, fewer)->size();
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<Size> sizes;
      bool own = false;  // rather than one draw for all replicas
      for (std::size_t g = 0; g < traces_.size(); ++g) {
        const Node& node = graph(g).nodes[draws[g][i]];
        if (const auto plain = plain_rows(graph(g), node)) sizes.emplace_back(*plain);
        own = own || graph(g).varying(node.outputs[0]);
      }
      if (!own || sizes.size() < traces_.size()) continue;
      if (std::ranges::count(sizes, sizes[0]) == std::ssize(sizes)) continue;
      const std::int64_t size = own_size(*numbers_, sizes, joined_.symbols);
      for (std::size_t g = 0; g < traces_.size(); ++g) rows[g][draws[g][i]] = size;
    }
    return rows;
  }

  void begin() {
    const Graph& first = graph(0);
    joined_.replicas = first.replicas;
    joined_.arguments = first.arguments;
    joined_.variables = first.variables;
    if (outer_) joined_.symbols.assign(outer_->begin(), outer_->end());
    for (const Symbol& symbol : first.symbols) {
      if (outer_ || symbol.kind != Symbol::Kind::kInput) break;
      joined_.symbols.push_back(symbol);
    }
  }

  // ---- what is not the same in all traces ----

  GuardedValue* choice_of(const std::vector<int>& numbers) {
    const bool same = std::ranges::count(numbers, numbers[0]) == std::ssize(numbers);
    if (same && (numbers_->common(numbers[0]) || numbers_->is_constant(numbers[0]))) return nullptr;
    const auto [at, fresh] = choices_.try_emplace(numbers);
    if (!fresh) return &at->second;
    GuardedValue& choice = at->second;
    choice.numbers = numbers;
    for (int number : numbers) choice.after = std::max(choice.after, numbers_->after(number));
    choice.type = type_of_choice(*numbers_, who_, choice, joined_.symbols);
    order_.push_back(&choice);
    return &choice;
  }

  std::vector<int> numbers_of(const std::vector<Value>& values) const {
    std::vector<int> numbers;
    for (std::size_t g = 0; g < values.size(); ++g) numbers.push_back(numbers_->of(g, values[g]));
    return numbers;
  }

  template <class Get>
  std::vector<int> across(Get get) const {
    Values values;
    for (std::size_t g = 0; g < traces_.size(); ++g) values.push_back(get(g));
    return numbers_of(values);
  }

  const Node& ordered_effect(std::size_t g, int place) const {
    return graph(g).nodes[numbers_->ordered_effects(g)[std::size_t(place)]];
  }
  std::vector<int> operand(int place, std::size_t k) const {
    return across([&](std::size_t g) { return ordered_effect(g, place).inputs[k]; });
  }
  std::vector<int> output(std::size_t i) const {
    return across([&](std::size_t g) { return graph(g).outputs[i]; });
  }
  std::vector<int> written(std::size_t w) const {
    return across([&](std::size_t g) { return graph(g).writes[w].value; });
  }

  void find_choices() {
    for (int place = 0; place < ordered_effects(); ++place) {
      for (std::size_t k = 0; k < own_operands(ordered_effect(0, place)); ++k) {
        (void)choice_of(operand(place, k));
      }
    }
    for (std::size_t g = 1; g < traces_.size(); ++g) {
      SG_CHECK_VALUE(
          graph(g).outputs.size() == graph(0).outputs.size(), "Strategy.run",
          "replicas must have as many results whatever their number of examples is: got ",
          graph(0).outputs.size(), " on ", who_[0], " and ", graph(g).outputs.size(), " on ",
          who_[g], "; stack them to one tensor.");
    }
    for (std::size_t i = 0; i < graph(0).outputs.size(); ++i) (void)choice_of(output(i));
    for (std::size_t w = 0; w < graph(0).writes.size(); ++w)
      check_written(w, choice_of(written(w)) != nullptr);
  }

  void check_written(std::size_t w, bool differs) const {
    const VariableSlot& slot = joined_.variables[graph(0).writes[w].variable];
    if (!differs || slot.components > 1) return;
    fail(ErrorKind::kRuntime, slot.name,
         "is one variable for all replicas, but what is assigned to it differs with the number of "
         "examples, by which Python took another way (",
         line_, ") on ", who_[0], " and ", who_[1],
         "; reduce it first: replica_context.all_reduce(samegrad.distribute.ReduceOp.SUM, value).");
  }

  // ---- the joined graph ----

  // The value of the joined graph for a number that all traces have.
  Value given(int number) {
    const auto at = values_.find(number);
    if (at != values_.end()) return at->second;
    const ValueInfo& info = numbers_->info(number);
    const ValueType& type = numbers_->type(number);
    const Graph& home = graph(numbers_->home(number));
    Value made = kNoValue;
    if (info.source == Source::kConstant) {
      made = joined_.add_constant(home.constants[info.constant()], type.batch);
    } else if (info.source == Source::kVariable) {
      made = joined_.add_read(info.slot(), type);
    } else {
      made = joined_.values.push_back({type, info.source, info.index, 0, info.placement});
    }
    return values_[number] = made;
  }

  void emit_common(int after) {
    const Graph& first = graph(0);
    for (NodeId n : first.nodes.ids()) {
      const Node& node = first.nodes[n];
      const int number = numbers_->of(0, node.outputs[0]);
      const bool now = !numbers_->is_ordered_effect(0, node) && numbers_->common(number) &&
                       numbers_->after(number) == after && !values_.contains(number);
      if (!now) continue;
      Values inputs;
      for (Value input : node.inputs) inputs.push_back(given(numbers_->of(0, input)));
      keep(node, append_node(builder_, first, numbers_->node(0, n), inputs));
    }
  }

  void keep(const Node& node, const Values& made) {
    for (std::size_t i = 0; i < made.size(); ++i) {
      values_[numbers_->of(0, node.outputs[i])] = made[i];
    }
  }

  // Makes all choices that can be made before the next ordered effect.
  void emit_choices(int after) {
    std::vector<GuardedValue*> ready;
    for (GuardedValue* choice : order_) {
      if (choice->value == kNoValue && choice->after <= after) ready.push_back(choice);
    }
    if (ready.empty()) return;
    add_guarded_variants(*branches_, ready, builder_, [this](int number) { return given(number); });
  }

  Value value_of(const std::vector<int>& numbers) {
    const GuardedValue* choice = choice_of(numbers);
    return choice ? choice->value : given(numbers[0]);
  }

  // The number of operands without those that the bodies of a branch or loop capture.
  static std::size_t own_operands(const Node& node) {
    if (!node.op->has(kControl)) return node.inputs.size();
    return node.attrs.get_if<RoundsAttrs>() ? carried_values(node) : 1;
  }

  void emit_ordered_effect(int place) {
    const Node& node = ordered_effect(0, place);
    for (std::size_t k = 0; k < own_operands(node); ++k) {
      const GuardedValue* choice = choice_of(operand(place, k));
      if (choice && choice->value == kNoValue) emit_choices(place);
    }
    Values inputs;
    for (std::size_t k = 0; k < own_operands(node); ++k) {
      inputs.push_back(value_of(operand(place, k)));
    }
    Values made;
    if (node.op->has(kControl)) {
      made = emit_control(place, std::move(inputs));
    } else {
      const Node& mapped = mapped_ordered_effect(0, place);
      check_attrs(place, mapped.attrs);
      const bool own = node.op->has(kReplicaInvariant) && joined_.type(inputs[0]).shape.symbolic();
      made = own ? node.op->decompose({builder_, mapped.attrs, inputs, {}, {}})
                 : append_node(builder_, graph(0), mapped, inputs);
    }
    check_results(place, made);
    keep(node, made);
  }

  // The ordered effect with attributes and regions in terms of the common symbols.
  const Node& mapped_ordered_effect(std::size_t g, int place) const {
    return numbers_->node(g, numbers_->ordered_effects(g)[std::size_t(place)]);
  }

  // ---- branches and loops with collectives or effects: their bodies are joined in turn ----

  Values emit_control(int place, Values inputs) {
    Node node = mapped_ordered_effect(0, place);
    const bool loop = node.attrs.get_if<WhileAttrs>() != nullptr;
    if (!loop && !node.attrs.get_if<CondAttrs>()) fail_inside(node);
    const std::size_t own = loop ? inputs.size() : 0;  // arguments that are not captures
    const std::vector<int> captured = captures_of(place);
    for (int number : captured) inputs.push_back(given(number));
    std::vector<Placement> placements;
    for (std::size_t i = loop ? 0 : 1; i < inputs.size(); ++i) {
      placements.push_back(joined_.placement(inputs[i]));
    }
    for (bool again = true; again;) {
      again = false;
      for (std::size_t r = 0; r < node.regions.size(); ++r) {
        Graph region = join_regions(place, r, own, captured, placements);
        adopt_symbols(joined_, region);
        // Values that start replicated may differ after an iteration.
        const bool iteration = loop && !is_condition(node, r);
        for (std::size_t i = 0; iteration && i < own; ++i) {
          const Placement after = joined(placements[i], region.placement(region.outputs[i]));
          again = again || after != placements[i];
          placements[i] = after;
        }
        node.regions[r] = std::make_shared<const Graph>(std::move(region));
      }
    }
    if (loop) {
      WhileAttrs attrs = node.attrs.as<WhileAttrs>();
      const Graph& test = condition(node.regions);
      attrs.varying = test.varying(test.outputs[0]);
      node.attrs = attrs;
    } else {
      node.attrs = CondAttrs{joined_.varying(inputs[0])};
    }
    return append_node(builder_, graph(0), node, inputs);
  }

  // The numbers of what the bodies of any trace read from outside.
  std::vector<int> captures_of(int place) const {
    std::vector<int> captured;
    for (std::size_t g = 0; g < traces_.size(); ++g) {
      const Node& node = ordered_effect(g, place);
      for (std::size_t k = own_operands(node); k < node.inputs.size(); ++k) {
        const int number = numbers_->of(g, node.inputs[k]);
        if (!numbers_->common(number) && !numbers_->is_constant(number)) fail_inside(node);
        if (std::ranges::find(captured, number) == captured.end()) captured.push_back(number);
      }
    }
    return captured;
  }

  Graph join_regions(int place, std::size_t index, std::size_t own,
                     const std::vector<int>& captured,
                     const std::vector<Placement>& placements) const {
    std::vector<Specialization> bodies;
    for (std::size_t g = 0; g < traces_.size(); ++g) {
      const Node& node = ordered_effect(g, place);
      Graph body = *mapped_ordered_effect(g, place).regions[index];
      body.replicas = joined_.replicas;
      body.symbols.replicas = graph(g).symbols.replicas;
      body.arguments.clear();
      for (Placement placement : placements) body.arguments.push_back({placement});
      const std::size_t first = own_operands(node) - own;
      for (ValueInfo& info : body.values) {
        if (info.source != Source::kArgument) continue;
        if (info.argument() >= own) {
          const int number = numbers_->of(g, node.inputs[first + info.argument()]);
          const auto at = std::ranges::find(captured, number) - captured.begin();
          info.index = std::int32_t(own) + std::int32_t(at);
        }
        info.placement = placements[info.argument()];
      }
      bodies.push_back({std::move(body), line_});
    }
    return SpecializationMerger(bodies, &joined_.symbols).run();
  }

  void check_attrs(int place, const Attrs& attrs) const {
    for (std::size_t g = 1; g < traces_.size(); ++g) {
      if (attrs == mapped_ordered_effect(g, place).attrs) continue;
      fail_other("collectives and effects", g, name_of(graph(0), ordered_effect(0, place)),
                 text("another ", name_of(graph(g), ordered_effect(g, place))));
    }
  }

  [[noreturn]] void fail_inside(const Node& node) const {
    fail(ErrorKind::kNotImplemented, "Strategy.run", name_of(graph(0), node),
         " is a branch or loop of the step with collectives or effects, and Python took another "
         "way before it by the number of examples (",
         line_, "): got ", who_[0], " and ", who_[1],
         "; let Python run it (range instead of samegrad.range), compute with samegrad.shape(x)[0] "
         "as a tensor, or give all replicas equally many examples (padding, drop_remainder=True).");
  }

  // Each trace went on with what it took the result to be.
  void check_results(int place, const Values& made) {
    for (std::size_t g = 0; g < traces_.size(); ++g) {
      const Node& node = ordered_effect(g, place);
      for (std::size_t i = 0; i < made.size(); ++i) {
        const ValueType type = numbers_->type_in(g, node.outputs[i]);
        SG_CHECK_VALUE(type == joined_.type(made[i]), "Strategy.run", name_of(graph(g), node),
                       " joins sizes to which Python fixed the replicas' numbers of examples (",
                       line_, "): it would be ", to_string(type), " by the count of ", who_[g],
                       " and is ", to_string(joined_.type(made[i])), kRemedy);
      }
    }
  }

  void finish() {
    for (std::size_t i = 0; i < graph(0).outputs.size(); ++i) {
      joined_.outputs.push_back(value_of(output(i)));
    }
    for (std::size_t w = 0; w < graph(0).writes.size(); ++w) {
      joined_.writes.push_back({graph(0).writes[w].variable, value_of(written(w))});
      check_written(w, joined_.varying(joined_.writes.back().value));
    }
  }

  const std::vector<Specialization>& traces_;
  const Symbols* outer_;
  std::vector<std::string> who_;
  std::string line_;
  Graph joined_;
  Builder builder_{joined_};
  ValueNumbers* numbers_ = nullptr;
  const GuardedVariants* branches_ = nullptr;
  std::map<std::vector<int>, GuardedValue> choices_;
  std::vector<GuardedValue*> order_;
  std::map<int, Value> values_;  // of numbers that are common
};

}  // namespace

Graph merge_specializations(const std::vector<Specialization>& traces) {
  return SpecializationMerger(traces, nullptr).run();
}

}  // namespace samegrad
