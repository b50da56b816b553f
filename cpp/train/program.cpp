#include "train/program.h"

#include <algorithm>
#include <list>
#include <unordered_map>

#include "base/function_enums.h"
#include "ir/regions.h"

namespace samegrad {
namespace {

constexpr std::size_t kCachedPrograms = 128;

// Gives every node a number of its own, in bodies too, under which its line is in `locations`:
// equal programs number alike.
void take_locations(Graph& graph, Locations& locations) {
  for (Node& node : graph.nodes) {
    locations.push_back(node.location < 0 ? "" : graph.locations[std::size_t(node.location)]);
    node.location = std::int32_t(locations.size() - 1);
    change_regions(node, [&](Graph& region) { take_locations(region, locations); });
  }
  graph.locations.clear();
}

// The constant becomes an argument.
Array take_constant(Graph& graph, ConstantId constant) {
  for (ValueInfo& info : graph.values) {
    if (info.source != Source::kConstant || info.constant() != constant) continue;
    info.source = Source::kArgument;
    info.index = std::int32_t(graph.arguments.size());
  }
  graph.arguments.push_back({});
  return std::exchange(graph.constants[constant], Array());
}

Binding take_binding(Program& program) {
  Binding binding;
  binding.variables = std::move(program.variables);
  for (VariableSlot& slot : program.graph.variables) {
    binding.names.push_back(std::exchange(slot.name, {}));
  }
  take_locations(program.graph, binding.locations);
  for (ConstantId c : program.graph.constants.ids()) {
    if (program.graph.constants[c].bytes() <= kLargeConstant) continue;
    binding.constants.push_back(take_constant(program.graph, c));
    binding.taken.push_back(c);
  }
  return binding;
}

using Indices = std::vector<ConstantId>;  // ascending

// The compiled programs of the process, the most recent first. Guarded by Python's lock, which
// every caller holds.
class Kept {
 public:
  // The compiled form of the graph; `open` tells which of its numbers are arguments.
  std::shared_ptr<CompiledProgram> find(Graph graph, const PlanOptions& options, bool numbers,
                                        Indices& open) {
    const std::uint64_t hash = hash_of(graph);
    auto akin = entries_.end();
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      const CacheEntry& entry = *at->second;
      Indices different;
      if (!(entry.options == options && same_program(*entry.graph, graph, different))) continue;
      if (numbers ? std::ranges::includes(entry.open, different)
                  : different.empty() && entry.open.empty()) {
        entries_.splice(entries_.begin(), entries_, at->second);
        open = entry.open;
        return entry.compiled;
      }
      if (!numbers || (akin != entries_.end() && akin->open.size() > entry.open.size())) continue;
      akin = at->second;
      open.clear();
      std::ranges::set_union(entry.open, different, std::back_inserter(open));
    }
    if (akin != entries_.end() && !akin->open.empty()) remove(akin);  // the new one does more
    return add(hash, std::make_shared<const Graph>(std::move(graph)), options, open);
  }

 private:
  struct CacheEntry {
    std::uint64_t hash;
    PlanOptions options;
    GraphPtr graph;
    Indices open;
    std::shared_ptr<CompiledProgram> compiled;
  };
  using Place = std::list<CacheEntry>::iterator;

  std::shared_ptr<CompiledProgram> add(std::uint64_t hash, GraphPtr graph,
                                       const PlanOptions& options, const Indices& open) {
    GraphPtr opened = graph;
    if (!open.empty()) {
      Graph copy = *graph;
      for (ConstantId c : open) (void)take_constant(copy, c);
      opened = std::make_shared<const Graph>(std::move(copy));
    }
    auto compiled = std::make_shared<CompiledProgram>(std::move(opened), options);
    std::list<CacheEntry> made;
    made.push_front({hash, options, std::move(graph), open, compiled});
    by_hash_.emplace(hash, made.begin());  // of the two, only this one may fail now
    entries_.splice(entries_.begin(), made);
    if (entries_.size() > kCachedPrograms) remove(std::prev(entries_.end()));
    return compiled;
  }

  void remove(Place place) {
    const auto [first, last] = by_hash_.equal_range(place->hash);
    by_hash_.erase(std::find_if(first, last, [&](const auto& at) { return at.second == place; }));
    entries_.erase(place);
  }

  std::list<CacheEntry> entries_;
  std::unordered_multimap<std::uint64_t, Place> by_hash_;
};

}  // namespace

CompiledProgram::CompiledProgram(GraphPtr graph, const PlanOptions& options)
    : graph_(std::move(graph)), options_(options), executable_(compile(*graph_, options)) {
  argument_types_.resize(graph_->arguments.size());
  for (const ValueInfo& info : graph_->values) {
    if (info.source == Source::kArgument) argument_types_[info.argument()] = info.type;
  }
}

Executable& CompiledProgram::executable(bool check_finite) {
  if (!check_finite) return executable_;
  const auto unfused = unfused_.lock();
  if (!*unfused) {
    PlanOptions options = options_;
    // Operations are those of the user.
    PassOptions& passes = options.passes;
    passes.fuse_epilogue = passes.fuse_elementwise = passes.redirect_type_operands = false;
    passes.split_tree_reductions = passes.rematerialize_for_later_loops = false;
    options.sparse_rows = false;
    options.fuse_updates = false;    // looks at what passes between their nodes
    options.write_in_place = false;  // any operation may stop the step
    *unfused = std::make_unique<Executable>(compile(*graph_, options));
  }
  return **unfused;
}

BoundProgram compile_program(Program program, const PlanOptions& options, Sharing sharing) {
  // Never destroyed: what it holds may outlive static destruction.
  static auto* kept = new Kept;
  BoundProgram bound;
  bound.binding = take_binding(program);
  if (sharing == Sharing::kNone) {
    auto graph = std::make_shared<const Graph>(std::move(program.graph));
    bound.compiled = std::make_shared<CompiledProgram>(std::move(graph), options);
    return bound;
  }
  IndexedVector<ConstantId, Array> constants;
  if (sharing == Sharing::kNumbers) constants = program.graph.constants;
  Indices open;
  bound.compiled =
      kept->find(std::move(program.graph), options, sharing == Sharing::kNumbers, open);
  for (ConstantId c : open) {
    bound.binding.constants.push_back(constants[c]);
    bound.binding.taken.push_back(c);
  }
  return bound;
}

}  // namespace samegrad
