#include "passes/set_lengths.h"

#include <algorithm>
#include <optional>

#include "ir/builder.h"
#include "ir/located_error.h"

namespace samegrad {
namespace {

using Numbers = std::vector<std::int64_t>;
// By symbol of the trace: what it is in the program; absent: nobody has asked.
using Sizes = std::vector<std::optional<Size>>;

class LengthSetter {
 public:
  LengthSetter(const Graph& from, const Numbers& lengths) : from_(from), lengths_(lengths) {
    sizes_.resize(from.symbols.size());
  }
  // A region, in the program so far.
  LengthSetter(const Graph& from, const LengthSetter& outer)
      : from_(from), lengths_(outer.lengths_) {
    sizes_.resize(from.symbols.size());
    share(outer.from_, outer.sizes_, from_, sizes_);
    to_.symbols = outer.to_.symbols;
  }

  Graph run() {
    copy_outside();
    for (const Node& node : from_.nodes) {
      first_.push_back(to_.nodes.next_id());
      add(node);
    }
    first_.push_back(to_.nodes.next_id());
    for (Value output : from_.outputs) to_.outputs.push_back(map_[output]);
    for (const StateWrite& write : from_.writes) {
      to_.writes.push_back({write.variable, map_[write.value]});
    }
    for (const StateWrite& read : from_.rereads) {
      to_.rereads.push_back({read.variable, map_[read.value]});
    }
    for (const CallRange& call : from_.calls) {
      to_.calls.push_back({first_[call.begin], first_[call.end], call.run});
    }
    to_.locations = from_.locations;
    return std::move(to_);
  }

 private:
  void copy_outside() {
    to_.arguments = from_.arguments;
    to_.variables = from_.variables;
    to_.constants = from_.constants;
    to_.replicas = from_.replicas;
    to_.symbols.replicas = from_.symbols.replicas;
    // In their order, in which arguments count examples.
    for (std::size_t s = 0; s < from_.symbols.size(); ++s) {
      if (from_.symbols[s].kind == Symbol::Kind::kInput) (void)size_of_old(int(s));
    }
    map_ = PerValue<Value>(from_.values.size(), kNoValue);
    for (Value v : from_.values.ids()) {
      ValueInfo info = from_.values[v];
      if (info.source == Source::kNode) continue;
      info.type = type(info.type);
      map_[v] = to_.values.push_back(std::move(info));
    }
  }

  void add(const Node& node) {
    Values inputs;
    for (Value input : node.inputs) inputs.push_back(map_[input]);
    Attrs attrs = node.attrs.with_integers([this](std::int64_t number) { return dim(number); });
    std::vector<GraphPtr> regions;
    for (const GraphPtr& region : node.regions) {
      LengthSetter inside(*region, *this);
      regions.push_back(std::make_shared<const Graph>(inside.run()));
      adopt(inside, *regions.back());
    }
    const Values outputs = apply(node, inputs, std::move(attrs), std::move(regions));
    Node& made = to_.nodes.back();
    made.location = node.location;
    made.derivative = node.derivative;
    for (std::size_t i = 0; i < outputs.size(); ++i) map_[node.outputs[i]] = outputs[i];
  }

  Values apply(const Node& node, const Values& inputs, Attrs attrs, std::vector<GraphPtr> regions) {
    try {
      return builder_.apply(*node.op, inputs, std::move(attrs), std::move(regions));
    } catch (const Error& error) {
      LocatedError located(error, node);
      if (std::size_t(node.location) < from_.locations.size()) located.find_line(from_.locations);
      throw located;
    }
  }

  // The program knows the symbols that its region made.
  void adopt(const LengthSetter& inside, const Graph& region) {
    for (std::size_t s = 0; s < region.symbols.size(); ++s) {
      if (s == to_.symbols.size()) to_.symbols.push_back(region.symbols[s]);
      if (region.symbols[s].fixed) to_.symbols[s].fixed = true;
    }
    share(inside.from_, inside.sizes_, from_, sizes_);
  }

  // What is known of the symbols that both graphs have. A region may have some of its own behind
  // those that it found.
  static void share(const Graph& known, const Sizes& sizes, const Graph& asks, Sizes& found) {
    for (std::size_t s = 0; s < std::min(sizes.size(), found.size()); ++s) {
      if (sizes[s] && known.symbols[s].same_rule(asks.symbols[s])) found[s] = sizes[s];
    }
  }

  // What a symbol of the trace is in the program.
  const Size& size_of_old(int symbol) {
    std::optional<Size>& known = sizes_[std::size_t(symbol)];
    if (known) return *known;
    const Symbol& s = from_.symbols[std::size_t(symbol)];
    const Size size = made(s, symbol);
    if (s.fixed) {
      for (int part : size.symbols()) to_.symbols[std::size_t(part)].fixed = true;
    }
    return *(sizes_[std::size_t(symbol)] = size);
  }

  Size made(const Symbol& symbol, int index) {
    switch (symbol.kind) {
      case Symbol::Kind::kLength:
        return lengths_[std::size_t(index)];
      case Symbol::Kind::kInput: {
        Symbol own = symbol;
        own.fixed = false;
        return Size::of_symbol(to_.add_symbol(own));
      }
      case Symbol::Kind::kSize:
        return symbol.size.with_sizes([this](int part) { return size_of_old(part); });
      case Symbol::Kind::kSum:
        return sum(symbol);
      default:
        return part(symbol);
    }
  }

  Size sum(const Symbol& symbol) {
    Symbol own = without_counts(symbol);
    Size all;
    bool symbols = true;
    for (int& part : own.parts) {
      const Size& size = size_of_old(part);
      all = all + size;
      symbols = symbols && size.symbol();
      part = size.symbol().value_or(0);
    }
    return symbols ? Size::of_symbol(derived_symbol(to_.symbols, std::move(own))) : all;
  }

  // Of one other count.
  Size part(const Symbol& symbol) {
    const Size whole = size_of_old(symbol.parts[0]);
    if (const auto n = whole.number()) {
      if (symbol.kind == Symbol::Kind::kQuotient) return *n / symbol.step;
      if (symbol.kind == Symbol::Kind::kGlobal) return *n * from_.replicas;
      return slice_range(symbol.begin, symbol.end, symbol.step, *n).count;
    }
    Symbol own = without_counts(symbol);
    own.parts = {int(dim_of(to_.symbols, whole) - kSymbols)};
    return Size::of_symbol(derived_symbol(to_.symbols, std::move(own)));
  }

  static Symbol without_counts(Symbol symbol) {
    symbol.fixed = false;
    return symbol;
  }

  std::int64_t dim(std::int64_t dim) {
    if (!is_symbolic(dim) || std::size_t(dim - kSymbols) >= from_.symbols.size()) return dim;
    const int symbol = int(dim - kSymbols);
    const Symbol& known = from_.symbols[std::size_t(symbol)];
    // A number of examples is not a size.
    if (known.kind == Symbol::Kind::kSize && known.size.number()) return kSymbols + count(symbol);
    return dim_of(to_.symbols, size_of_old(symbol));
  }

  int count(int symbol) {
    const Size size = size_of_old(symbol);
    if (const auto own = size.symbol()) return *own;
    Symbol made;
    made.kind = Symbol::Kind::kSize;
    made.size = size;
    return derived_symbol(to_.symbols, std::move(made));
  }

  ValueType type(ValueType type) {
    for (int axis = 0; axis < type.shape.rank(); ++axis) type.shape[axis] = dim(type.shape[axis]);
    if (type.batched()) {
      type.batch.rows_per_example = dim(type.batch.rows_per_example);
      type.batch.symbol = count(type.batch.symbol);
    }
    return type;
  }

  const Graph& from_;
  const Numbers& lengths_;
  Sizes sizes_;
  Graph to_;
  Builder builder_{to_};
  PerValue<Value> map_;
  PerNode<NodeId> first_;  // of the program, by node of the trace
};

}  // namespace

bool has_lengths(const Graph& graph) {
  return std::ranges::any_of(
      graph.symbols, [](const Symbol& symbol) { return symbol.kind == Symbol::Kind::kLength; });
}

Graph set_lengths(const Graph& graph, const Numbers& lengths) {
  return LengthSetter(graph, lengths).run();
}

}  // namespace samegrad
