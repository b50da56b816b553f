#include "train/traced_programs.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "passes/specialize_lengths.h"

namespace samegrad {
namespace {

using Arguments = std::vector<PerReplica<Array>>;

bool is_length(const Graph& graph, std::int64_t dim) {
  return is_symbolic(dim) &&
         graph.symbols[std::size_t(dim - kSymbols)].kind == Symbol::Kind::kLength;
}

// visit(symbol, argument, axis) of every length.
template <class Visit>
void each_length(const Graph& graph, const Visit& visit) {
  for (const ValueInfo& info : graph.values) {
    if (info.source != Source::kArgument) continue;
    for (int axis = 0; axis < info.type.shape.rank(); ++axis) {
      const std::int64_t dim = info.type.shape[axis];
      if (is_length(graph, dim)) visit(std::size_t(dim - kSymbols), info.argument(), axis);
    }
  }
}

// The values of a trace's symbols for the arguments, by replica.
Counts counts_for(const Graph& graph, const Arguments& arguments) {
  Counts counts(std::size_t(graph.replicas), {});
  for (std::size_t r = 0; r < counts.size(); ++r) {
    for (const Symbol& symbol : graph.symbols) counts[r].push_back(symbol.traced_on(r));
    each_length(graph, [&](std::size_t symbol, std::size_t argument, int axis) {
      counts[r][symbol] = arguments[argument][0].shape()[axis];
    });
    for (const ValueInfo& info : graph.values) {
      const ExampleAxis& batch = info.type.batch;
      if (info.source != Source::kArgument || !batch.exists()) continue;
      const PerReplica<std::int64_t> examples =
          counts_of(arguments[info.argument()].values(), batch);
      counts[r][std::size_t(batch.symbol)] = examples.at(r);
    }
  }
  complete_counts(graph.symbols, counts);
  return counts;
}

// True if the counts are those that the trace is bound to, on the replicas whose trace it is.
bool has_bound_counts(const Symbols& symbols, const Counts& counts) {
  const Counts traced = counts_of_all(symbols);
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto own = std::ranges::find(symbols.replicas, int(r));
    if (!symbols.replicas.empty() && own == symbols.replicas.end()) continue;
    const auto& known = traced.at(r);
    for (std::size_t s = 0; s < symbols.size(); ++s) {
      if (symbols[s].fixed && counts[r][s] != known[s]) return false;
    }
  }
  return true;
}

const char* relation_of(const LengthGuard& guard) {
  const auto is = [&](std::int64_t n) { return guard.holds(n) == guard.outcome; };
  const bool below = is(-1), equal = is(0), above = is(1);
  if (equal) return below && above ? "any" : below ? "<=" : above ? ">=" : "==";
  return below && above ? "!=" : below ? "<" : ">";
}

}  // namespace

bool TracedPrograms::has_lengths() const {
  return samegrad::has_lengths(programs_[0].graph);
}

std::optional<Program> TracedPrograms::program_of(const Arguments& arguments) const {
  std::vector<Program> programs;
  for (const Program& program : programs_) {
    const Counts counts = counts_for(program.graph, arguments);
    if (!holds_for(program.graph.symbols, counts[0])) return std::nullopt;
    if (!has_bound_counts(program.graph.symbols, counts)) return std::nullopt;
    programs.push_back({samegrad::specialize_lengths(program.graph, counts[0]), program.variables,
                        program.processes});
  }
  if (programs.size() == 1) return std::move(programs[0]);
  return join_programs(std::move(programs), split_at_);
}

Program TracedPrograms::take() {
  if (programs_.size() == 1) return std::move(programs_[0]);
  return join_programs(std::move(programs_), split_at_);
}

const Program& TracedPrograms::only() const {
  SG_CHECK_VALUE(programs_.size() == 1, "TracedPrograms",
                 "a function is saved as traced once: got ", programs_.size(), " traces.");
  return programs_[0];
}

std::vector<std::string> TracedPrograms::granted() const {
  std::vector<std::string> all;
  for (const Program& program : programs_) {
    std::map<std::size_t, std::string> names;
    each_length(program.graph, [&](std::size_t symbol, std::size_t argument, int axis) {
      names[symbol] = text("size ", axis, " of argument ", argument);
    });
    const auto name = [&](int symbol) {
      const auto known = names.find(std::size_t(symbol));
      return known == names.end() ? text("a size made of them") : known->second;
    };
    for (const LengthGuard& guard : program.graph.symbols.guards) {
      std::string line = text(guard.size.to_string(name), " ", relation_of(guard), " 0");
      if (!guard.location.empty()) line += " (" + guard.location + ")";
      if (std::ranges::find(all, line) == all.end()) all.push_back(std::move(line));
    }
  }
  return all;
}

}  // namespace samegrad
