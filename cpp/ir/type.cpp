#include "ir/type.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace samegrad {

std::string to_string(const ValueType& type) {
  std::string out = text(name_of(type.dtype), " ", to_string(type.shape));
  if (type.batched()) {
    out += text(" examples", type.batch.symbol ? text("#", type.batch.symbol) : "", " on axis ",
                type.batch.axis);
    if (is_symbolic(type.batch.rows_per_example)) {
      out += " x?";
    } else if (type.batch.rows_per_example != 1) {
      out += text(" x", type.batch.rows_per_example);
    }
  }
  return out;
}

namespace {
void complete(const Symbol& symbol, std::int64_t& count, const std::vector<std::int64_t>& counts) {
  if (symbol.kind == Symbol::Kind::kSlice) {
    const std::int64_t n = counts[std::size_t(symbol.parts[0])];
    count = slice_range(symbol.begin, symbol.end, symbol.step, n).count;
  } else if (symbol.kind == Symbol::Kind::kSum) {
    count = 0;
    for (int part : symbol.parts) count += counts[std::size_t(part)];
  } else if (symbol.kind == Symbol::Kind::kSize) {
    count = symbol.size.value(counts);
  } else if (symbol.kind == Symbol::Kind::kQuotient) {
    count = counts[std::size_t(symbol.parts[0])] / symbol.step;
  }
}
}  // namespace

void complete_counts(const std::vector<Symbol>& symbols, Counts& counts) {
  for (auto& of_replica : counts) of_replica.resize(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].kind == Symbol::Kind::kGlobal) {
      std::int64_t all = 0;
      for (const auto& of_replica : counts) all += of_replica[std::size_t(symbols[i].parts[0])];
      for (auto& of_replica : counts) of_replica[i] = all;
      continue;
    }
    for (auto& of_replica : counts) complete(symbols[i], of_replica[i], of_replica);
  }
}

void complete_counts(const std::vector<Symbol>& symbols, std::vector<std::int64_t>& counts) {
  counts.resize(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) complete(symbols[i], counts[i], counts);
}

bool joins_replicas(const std::vector<Symbol>& symbols, std::size_t symbol) {
  const Symbol& s = symbols[symbol];
  if (s.kind == Symbol::Kind::kLength) return true;
  if (s.kind == Symbol::Kind::kSize) {
    const std::vector<int> parts = s.size.symbols();
    return !parts.empty() && std::ranges::all_of(parts, [&](int part) {
      return joins_replicas(symbols, std::size_t(part));
    });
  }
  if (s.kind == Symbol::Kind::kInput || s.parts.empty()) return false;
  return s.kind == Symbol::Kind::kGlobal ||
         std::all_of(s.parts.begin(), s.parts.end(),
                     [&](int part) { return joins_replicas(symbols, std::size_t(part)); });
}

namespace {

// The symbols that are given from outside and decide this one.
void find_given(const std::vector<Symbol>& symbols, int symbol, std::vector<int>& given) {
  const Symbol& s = symbols[std::size_t(symbol)];
  if (s.kind == Symbol::Kind::kInput || s.kind == Symbol::Kind::kLength) {
    if (std::ranges::find(given, symbol) == given.end()) given.push_back(symbol);
    return;
  }
  const std::vector<int> parts = s.kind == Symbol::Kind::kSize ? s.size.symbols() : s.parts;
  for (int part : parts) find_given(symbols, part, given);
}

std::vector<int> given_of(const std::vector<Symbol>& symbols, const Size& size) {
  std::vector<int> given;
  for (int symbol : size.symbols()) find_given(symbols, symbol, given);
  return given;
}

bool is_length(const std::vector<Symbol>& symbols, int symbol) {
  return symbols[std::size_t(symbol)].kind == Symbol::Kind::kLength;
}

bool is_equality(bool (*holds)(std::int64_t)) {
  return holds(0) && !holds(1) && !holds(-1);
}

bool is_zero(std::int64_t n) {
  return n == 0;
}

}  // namespace

bool follows_lengths(const std::vector<Symbol>& symbols, const Size& size) {
  const std::vector<int> given = given_of(symbols, size);
  return !given.empty() &&
         std::ranges::all_of(given, [&](int symbol) { return is_length(symbols, symbol); });
}

bool follows_lengths(const std::vector<Symbol>& symbols, std::int64_t dim) {
  return is_symbolic(dim) && follows_lengths(symbols, Size::of_symbol(int(dim - kSymbols)));
}

bool holds_for(const Symbols& symbols, const std::vector<std::int64_t>& counts) {
  return std::ranges::all_of(symbols.guards, [&](const LengthGuard& guard) {
    return guard.holds(guard.size.value(counts)) == guard.outcome;
  });
}

bool differs_between_replicas(const std::vector<Symbol>& symbols, std::int64_t size) {
  return is_symbolic(size) && !joins_replicas(symbols, std::size_t(size - kSymbols));
}

bool has_counted_size(const std::vector<Symbol>& symbols, const ValueType& type) {
  return std::any_of(type.shape.begin(), type.shape.end(), [&](std::int64_t size) {
    return is_symbolic(size) && !follows_lengths(symbols, size);
  });
}

Counts counts_of_all(const std::vector<Symbol>& symbols) {
  std::size_t replicas = 1;
  for (const Symbol& symbol : symbols) replicas = std::max(replicas, symbol.traced_counts.size());
  Counts counts(replicas, {});
  for (std::size_t r = 0; r < replicas; ++r) {
    for (const Symbol& symbol : symbols) counts[r].push_back(symbol.traced_on(r));
    complete_counts(symbols, counts[r]);
  }
  return counts;
}

Counts traced_counts(const Symbols& symbols) {
  auto all = counts_of_all(symbols);
  if (symbols.replicas.empty() || all.size() == 1) return all;
  Counts own;
  for (int replica : symbols.replicas) own.push_back(std::move(all[std::size_t(replica)]));
  return own;
}

int derived_symbol(std::vector<Symbol>& symbols, Symbol symbol) {
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].same_rule(symbol)) return int(i);
  }
  symbols.push_back(std::move(symbol));
  const auto counts = counts_of_all(symbols);
  Symbol& made = symbols.back();
  made.traced_count = counts[0].back();
  for (const auto& of_replica : counts) made.traced_counts.push_back(of_replica.back());
  if (std::ranges::count(made.traced_counts, made.traced_count) == std::ssize(counts)) {
    made.traced_counts.clear();
  }
  return int(symbols.size() - 1);
}

int count_symbol(std::vector<Symbol>& symbols, std::int64_t dim) {
  if (is_symbolic(dim)) return int(dim - kSymbols);
  Symbol known;
  known.kind = Symbol::Kind::kSize;
  known.size = dim;
  return derived_symbol(symbols, std::move(known));
}

Size size_of_symbol(const std::vector<Symbol>& symbols, int symbol) {
  const Symbol& s = symbols[std::size_t(symbol)];
  const auto resolved = [&](int part) { return size_of_symbol(symbols, part); };
  if (s.equal) return s.equal->with_sizes(resolved);
  if (s.kind == Symbol::Kind::kSize) return s.size.with_sizes(resolved);
  if (s.kind != Symbol::Kind::kSum) return Size::of_symbol(symbol);
  Size sum;
  for (int part : s.parts) sum = sum + size_of_symbol(symbols, part);
  return sum;
}

Size size_of(const std::vector<Symbol>& symbols, std::int64_t dim) {
  return is_symbolic(dim) ? size_of_symbol(symbols, int(dim - kSymbols)) : Size(dim);
}

Size size_of(const std::vector<Symbol>& symbols, const ValueType& type, int axis) {
  if (type.batch.axis != axis) return size_of(symbols, type.shape[axis]);
  return size_of(symbols, type.batch.rows_per_example) * size_of_symbol(symbols, type.batch.symbol);
}

std::int64_t dim_of(std::vector<Symbol>& symbols, const Size& size) {
  if (const auto number = size.number()) return *number;
  if (const auto symbol = size.symbol()) return kSymbols + *symbol;
  Symbol made;
  made.kind = Symbol::Kind::kSize;
  made.size = size;
  return kSymbols + derived_symbol(symbols, std::move(made));
}

std::int64_t concrete_size(std::int64_t dim, const std::vector<std::int64_t>& counts) {
  if (!is_symbolic(dim)) return dim;
  const std::int64_t size = counts[std::size_t(dim - kSymbols)];
  SG_CHECK_VALUE(size >= 0, "shape",
                 "a size that follows from the number of examples must be 0 or "
                 "more: got ",
                 size, "; give every replica enough examples for it.");
  return size;
}

std::size_t leader(const Symbols& symbols) {
  const auto traced = traced_counts(symbols);
  std::vector<std::int64_t> examples(traced.size(), 0);
  for (std::size_t r = 0; r < traced.size(); ++r) {
    for (std::size_t s = 0; s < symbols.size(); ++s) {
      if (symbols[s].kind == Symbol::Kind::kInput) examples[r] += traced[r][s];
    }
  }
  return std::size_t(std::ranges::max_element(examples) - examples.begin());
}

namespace {

void bind_to_counts(Symbols& symbols, const Size& size) {
  for (int symbol : size.symbols()) symbols[std::size_t(symbol)].fixed = true;
}

// The values that a size has on the replicas of the trace, one if they are equal.
std::vector<std::int64_t> traced_values(const Symbols& symbols, const Size& size) {
  std::vector<std::int64_t> values;
  for (const auto& counts : traced_counts(symbols)) values.push_back(size.value(counts));
  return values;
}

// The size on the leader, to which the program is bound; replicas on which it is not like that are
// left out of it.
template <class Alike>
std::int64_t bind_to_leader(Symbols& symbols, const Size& size, Alike alike) {
  const std::vector<std::int64_t> values = traced_values(symbols, size);
  const std::int64_t leading = values[leader(symbols)];
  std::vector<int> kept;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int replica = symbols.replicas.empty() ? int(i) : symbols.replicas[i];
    if (alike(values[i], leading)) kept.push_back(replica);
  }
  if (kept.size() < values.size()) symbols.replicas = std::move(kept);
  bind_to_counts(symbols, size);
  return leading;
}

// In what the trace found equal.
Size with_equals(const Symbols& symbols, const Size& size) {
  return size.with_sizes([&](int symbol) { return size_of_symbol(symbols, symbol); });
}

void add_guard(Symbols& symbols, LengthGuard guard) {
  const auto same = [&](const LengthGuard& known) {
    return known.size == guard.size && known.holds == guard.holds;
  };
  if (std::ranges::none_of(symbols.guards, same)) symbols.guards.push_back(std::move(guard));
}

// Records the value of one symbol that follows from a size that must be 0.
void note_equal(Symbols& symbols, const Size& zero) {
  const std::vector<int> all = zero.symbols();
  for (auto symbol = all.rbegin(); symbol != all.rend(); ++symbol) {
    if (const auto equal = zero.solved_for(*symbol)) {
      symbols[std::size_t(*symbol)].equal = *equal;
      return;
    }
  }
}

// Decides a condition on a size that follows from lengths alone.
bool decide_lengths(Symbols& symbols, const Size& size, bool (*holds)(std::int64_t)) {
  const bool outcome = holds(size.value(counts_of_all(symbols)[0]));
  add_guard(symbols, {size, holds, outcome});
  if (outcome && is_equality(holds)) note_equal(symbols, size);
  return outcome;
}

// Examples are counted together with lengths: the trace is that of these lengths.
void bind_lengths(Symbols& symbols, const Size& size) {
  for (int symbol : given_of(symbols, size)) {
    if (is_length(symbols, symbol)) (void)bound_size(symbols, Size::of_symbol(symbol));
  }
}

}  // namespace

bool decide(Symbols& symbols, const Size& asked, bool (*holds)(std::int64_t)) {
  const Size size = with_equals(symbols, asked);
  if (const auto number = size.number()) return holds(*number);
  if (follows_lengths(symbols, size)) return decide_lengths(symbols, size, holds);
  bind_lengths(symbols, size);
  return holds(bind_to_leader(
      symbols, size, [&](std::int64_t a, std::int64_t b) { return holds(a) == holds(b); }));
}

bool same_type(Symbols& symbols, const ValueType& a, const ValueType& b) {
  if (a == b) return true;
  if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank() || a.batch.axis != b.batch.axis) {
    return false;
  }
  const auto same = [&](std::int64_t x, std::int64_t y) {
    const bool asks = follows_lengths(symbols, x) || follows_lengths(symbols, y);
    const Size difference = size_of(symbols, x) - size_of(symbols, y);
    return x == y || (asks && decide(symbols, difference, is_zero));
  };
  bool all = same(a.batch.rows_per_example, b.batch.rows_per_example);
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    all = all && same(a.shape[axis], b.shape[axis]);
  }
  return all;
}

std::optional<ValueType> joined_type(Symbols& symbols, const ValueType& a, const ValueType& b) {
  if (a == b) return a;
  if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank()) return std::nullopt;
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    const Size difference = size_of(symbols, a, axis) - size_of(symbols, b, axis);
    if (!decide(symbols, difference, is_zero)) return std::nullopt;
  }
  if (!a.batched() || !b.batched()) return b.batched() ? b : a;
  // A number of examples gives way to the count of a batch.
  const auto is_number = [&](const ValueType& type) {
    return size_of_symbol(symbols, type.batch.symbol).number().has_value();
  };
  return a.batch.axis == b.batch.axis && is_number(a) && !is_number(b) ? b : a;
}

std::int64_t bound_size(Symbols& symbols, const Size& asked) {
  const Size size = with_equals(symbols, asked);
  if (const auto number = size.number()) return *number;
  if (follows_lengths(symbols, size)) {
    const std::int64_t value = size.value(counts_of_all(symbols)[0]);
    (void)decide_lengths(symbols, size - value, is_zero);
    return value;
  }
  bind_lengths(symbols, size);
  return bind_to_leader(symbols, size, std::equal_to<>());
}

std::optional<std::int64_t> bound_count(const Symbols& symbols, int symbol) {
  const auto at = std::size_t(symbol);
  if (!symbols[at].fixed) return std::nullopt;
  const auto traced = traced_counts(symbols);
  for (const auto& counts : traced) {
    if (counts[at] != traced[0][at]) return std::nullopt;
  }
  return traced[0][at];
}

bool is_one(const Symbols& symbols, const ValueType& type, int axis) {
  const Size size = size_of(symbols, type, axis);
  if (const auto number = size.number()) return *number == 1;
  if (follows_lengths(symbols, size)) return false;  // it would be known
  const auto made_of = size.symbols();
  return std::ranges::all_of(made_of, [&](int s) { return symbols[std::size_t(s)].fixed; }) &&
         std::ranges::all_of(traced_values(symbols, size), [](auto n) { return n == 1; });
}

Shape concrete_shape(const ValueType& type, const std::vector<std::int64_t>& counts) {
  Shape shape = type.shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    shape[axis] = concrete_size(shape[axis], counts);
  }
  if (type.batched()) {
    shape[type.batch.axis] =
        concrete_size(type.batch.rows_per_example, counts) * counts[std::size_t(type.batch.symbol)];
  }
  return shape;
}

Shape shape_or_empty(const ValueType& type, const std::vector<std::int64_t>& counts) {
  ValueType possible = type;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    const std::int64_t dim = type.shape[axis];
    if (is_symbolic(dim)) {
      possible.shape[axis] = std::max<std::int64_t>(counts[std::size_t(dim - kSymbols)], 0);
    }
  }
  return concrete_shape(possible, counts);
}

std::int64_t example_size(const ValueType& type) {
  Shape shape = type.shape;
  if (type.batched()) shape[type.batch.axis] = type.batch.rows_per_example;
  return shape.size();
}

std::int64_t example_bytes(const ValueType& type) {
  return example_size(type) * std::int64_t(size_of(type.dtype));
}

}  // namespace samegrad
