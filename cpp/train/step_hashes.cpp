#include "train/step_hashes.h"

#include <algorithm>
#include <span>

#include "ir/op_def.h"
#include "kernels/table.h"
#include "plan/recorded_results.h"
#include "runtime/state_lock.h"
#include "tensor/non_addressable.h"
#include "train/operation_hashes.h"

namespace samegrad {
namespace {

// Arguments with more examples have no hash of each.
constexpr std::int64_t kMaxExamples = std::int64_t(1) << 16;

std::int64_t examples_before(const Counts& counts, std::size_t replicas, std::size_t symbol) {
  std::int64_t sum = 0;
  for (std::size_t r = 0; r < replicas; ++r) sum += counts[r][symbol];
  return sum;
}

// OwnParts of a value that this process has, the first of which is that of `first_replica`.
struct OwnParts {
  const ValueType& type;
  std::span<const Array> arrays;
  bool varying;
};

std::uint64_t hash_of_parts(const OwnParts& parts, const ExecuteParams& call) {
  if (!parts.varying || parts.arrays.size() < call.counts.size()) {
    const Array& array = parts.arrays[0];
    return hashes_replicated(call) ? hash_of({array.dtype(), array.raw(), array.shape()}) : 0;
  }
  const auto first = std::size_t(call.first_replica());
  std::uint64_t sum = 0;
  for (std::size_t r = 0; r < parts.arrays.size(); ++r) {
    const Array& array = parts.arrays[r];
    if (!parts.type.batched()) {
      sum += hash_of_copy(array, std::int64_t(first + r));
      continue;
    }
    const auto symbol = std::size_t(parts.type.batch.symbol);
    const std::int64_t own = call.counts[r][symbol];
    if (own == 0) continue;
    const int axis = parts.type.batch.axis;
    const std::int64_t rows = array.shape()[axis] / own;
    const Counts& world = call.counts_of_world();
    sum += hash_of({array.dtype(), array.raw(), array.shape(), axis,
                    examples_before(world, first + r, symbol) * rows,
                    examples_before(world, world.size(), symbol) * rows});
  }
  return sum;
}

// The hash of each example as if it was the first one; 0 for those of other processes.
std::vector<std::uint64_t> hashes_of_examples(const OwnParts& parts, const ExecuteParams& call) {
  const auto symbol = std::size_t(parts.type.batch.symbol);
  const Counts& world = call.counts_of_world();
  const std::int64_t all = examples_before(world, world.size(), symbol);
  if (all > kMaxExamples) return {};
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(all));
  const bool is_whole = parts.arrays.size() < call.counts.size();
  if (is_whole && !hashes_replicated(call)) return hashes;
  const HashKernel kernel = kernels().hash(parts.type.dtype);
  std::size_t at = 0;
  if (!is_whole)
    at = std::size_t(examples_before(world, std::size_t(call.first_replica()), symbol));
  for (std::size_t r = 0; r < parts.arrays.size(); ++r) {
    const Array& array = parts.arrays[r];
    const std::int64_t own = call.counts[r][symbol];
    const std::int64_t size = own ? array.shape().size() / own : 0;
    const std::int64_t bytes = own ? std::int64_t(array.bytes()) / own : 0;
    for (std::int64_t e = 0; e < own; ++e) {
      hashes[at++] = kernel(array.raw() + e * bytes, size, 0);
    }
  }
  return hashes;
}

std::vector<std::uint64_t*> places_of(StepRecord& record, std::vector<std::uint64_t>& before) {
  std::vector<std::uint64_t*> places;
  const auto add = [&](std::vector<std::uint64_t>& numbers) {
    for (std::uint64_t& number : numbers) places.push_back(&number);
  };
  add(record.hashes);
  add(before);
  for (auto& [argument, hashes] : record.example_hashes) add(hashes);
  for (OperationHash& operation : record.operations) add(operation.hashes);
  for (StoredHash& stored : record.stored) places.push_back(&stored.hash);
  return places;
}

}  // namespace

std::vector<StepEntry> entries_of(CompiledFunction& step) {
  std::vector<StepEntry> entries;
  const Graph& program = step.program();
  for (std::size_t a = 0; a < program.arguments.size(); ++a) {
    const Placement placement = program.arguments[a].placement;
    const ValueType& type = step.compiled().argument_types()[a];
    entries.push_back({StepEntry::Kind::kArgument, std::int32_t(a), {}, type, placement});
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const Value output = program.outputs[i];
    entries.push_back({StepEntry::Kind::kOutput,
                       std::int32_t(i),
                       {},
                       program.type(output),
                       program.placement(output)});
  }
  const Graph& graph = step.plan().graph;
  const auto add = [&](StepEntry::Kind kind, SlotId variable, Value value) {
    entries.push_back({kind, variable.number(), step.binding().names[variable.index()],
                       graph.type(value), graph.placement(value)});
  };
  const RecordedResults results = recorded_results(graph);
  for (const GradientSum& gradient : results.sums) {
    add(StepEntry::Kind::kGradient, gradient.variable, gradient.sum);
  }
  for (const StateWrite& write : results.writes) {
    add(StepEntry::Kind::kVariable, write.variable, write.value);
  }
  return entries;
}

StepRecorder::Layout& StepRecorder::layout_of(CompiledFunction& step) {
  std::erase_if(layouts_, [](const auto& one) { return one.first.expired(); });
  Layout& layout = layouts_[step.shared()];
  if (layout.hashes) return layout;
  layout.entries = entries_of(step);
  const RecordedResults results = recorded_results(step.plan().graph);
  for (const GradientSum& gradient : results.sums) layout.results.push_back(gradient.sum);
  for (const StateWrite& write : results.writes) layout.results.push_back(write.value);
  layout.hashes = std::make_unique<Hashes>(step.plan(), layout.results);
  return layout;
}

void StepHashes::begin(CompiledFunction& step, ExecuteParams& call) {
  record_.index = recorder_.next_;
  record_.seed = call.seed;
  if (step.plan().has_random) record_.draw = call.step;
  const Counts& world = call.counts_of_world();
  for (std::size_t s = 0; s < step.program().symbols.size(); ++s) {
    record_.examples.push_back(examples_before(world, world.size(), s));
  }
  layout_ = &recorder_.layout_of(step);
  record_.hashes.assign(entries().size(), 0);
  detailed_ = record_.index == recorder_.detail_;
  hash_arguments(step, call);
  hash_variables(call);
  if (detailed_) {
    hash_operations(step, call);
    std::vector<Value> all = results_of(step.plan().graph);
    all.insert(all.end(), layout_->results.begin(), layout_->results.end());
    of_all_ = std::make_unique<Hashes>(step.plan(), all);
  }
  layout_->hashes->reset();
  call.hashes = detailed_ ? of_all_.get() : layout_->hashes.get();
}

void StepHashes::hash_arguments(CompiledFunction& step, const ExecuteParams& call) {
  for (std::size_t e = 0; e < entries().size(); ++e) {
    if (entries()[e].kind != StepEntry::Kind::kArgument) break;
    const ValueType& type = step.compiled().argument_types()[e];
    const OwnParts parts{type, call.arguments[e], entries()[e].placement != Placement::kReplicated};
    record_.hashes[e] = hash_of_parts(parts, call);
    if (type.batch.axis != 0) continue;
    std::vector<std::uint64_t> hashes = hashes_of_examples(parts, call);
    if (!hashes.empty()) record_.example_hashes.emplace_back(e, std::move(hashes));
  }
}

// Hashes the variables that are not as the last recorded step left them.
void StepHashes::hash_variables(const ExecuteParams& call) {
  const StateLock lock(StateLock::Use::kRead);
  before_.assign(call.variables.size(), 0);
  is_before_.assign(call.variables.size(), 0);
  for (std::size_t v = 0; v < call.variables.size(); ++v) {
    StateCell& variable = *call.variables[v];
    const PerReplica<Array>& components = variable.components();
    if (detailed_) record_.variables.push_back({});
    for (const Array& array : components) {
      if (detailed_) record_.variables.back().push_back(array.copy());
    }
    const auto found = recorder_.known_.find(call.variables[v]);
    const bool known = found != recorder_.known_.end() && found->second.version == variable.version;
    if (known) {
      before_[v] = hashes_replicated(call) ? found->second.hash : 0;
      continue;
    }
    is_before_[v] = 1;
    for (std::size_t c = 0; c < components.size(); ++c) {
      const auto replica = std::int64_t(c) + (components.size() > 1 ? call.first_replica() : 0);
      if (components.size() > 1 || hashes_replicated(call)) {
        before_[v] += hash_of_copy(components[c], replica);
      }
    }
  }
}

void StepHashes::hash_operations(CompiledFunction& step, ExecuteParams call) {
  Executable& executable = step.compiled().executable(true);
  Hashes all(executable.plan(), results_of(executable.plan().graph), true);
  call.dry = true;
  call.hashes = &all;
  executable.run(call);
  record_.operations = operation_hashes(executable.plan(), all, step.binding().locations);
}

void StepHashes::hash_outputs(CompiledFunction& step, const ExecuteParams& call,
                              const std::vector<PerReplica<Array>>& outputs) {
  const Graph& program = step.program();
  for (std::size_t e = 0; e < entries().size(); ++e) {
    if (entries()[e].kind != StepEntry::Kind::kOutput) continue;
    const auto i = std::size_t(entries()[e].index);
    std::vector<Array> own;  // what replicas of other processes have is there
    std::ranges::copy_if(outputs[i], std::back_inserter(own),
                         [](const Array& array) { return !is_non_addressable(array); });
    if (own.empty()) continue;
    const bool varying = program.varying(program.outputs[i]);
    record_.hashes[e] = hash_of_parts({program.type(program.outputs[i]), own, varying}, call);
  }
}

// Takes over the hashes of the run.
void StepHashes::hash_results(const CompiledFunction& step, const Hashes& hashes) {
  const std::size_t first = entries().size() - layout_->results.size();
  for (std::size_t i = 0; i < layout_->results.size(); ++i) {
    const Value result = layout_->results[i];
    record_.hashes[first + i] = hashes.of(result);
    // Rank by rank: the sum of all is that of the value before, plus the change.
    const auto slot = std::size_t(entries()[first + i].index);
    if (hashes.is_change(result)) record_.hashes[first + i] += before_[slot];
  }
  if (detailed_) record_.stored = stored_hashes(step.plan(), hashes, step.binding().locations);
}

void StepHashes::add_up(const ExecuteParams& call) {
  if (!call.communicator) return;
  Communicator& world = *call.communicator;
  const std::vector<std::uint64_t*> places = places_of(record_, before_);
  std::vector<std::uint64_t> own;
  for (const std::uint64_t* place : places) own.push_back(*place);
  const auto bytes = std::int64_t(own.size() * sizeof(std::uint64_t));
  std::vector<std::vector<std::uint64_t>> of_ranks(std::size_t(world.size()), own);
  std::vector<Message> sends, receives;
  for (int rank = 0; rank < world.size(); ++rank) {
    if (rank == world.rank()) continue;
    sends.push_back({rank, reinterpret_cast<std::byte*>(own.data()), bytes});
    auto* from = of_ranks[std::size_t(rank)].data();
    receives.push_back({rank, reinterpret_cast<std::byte*>(from), bytes});
  }
  world.exchange(sends, receives);
  for (std::size_t i = 0; i < places.size(); ++i) {
    *places[i] = 0;
    for (const std::vector<std::uint64_t>& of_rank : of_ranks) *places[i] += of_rank[i];
  }
}

void StepHashes::remember(const ExecuteParams& call) {
  const auto know = [&](std::size_t v, std::uint64_t hash) {
    recorder_.known_[call.variables[v]] = {call.variables[v]->version, hash};
  };
  for (std::size_t v = 0; v < call.variables.size(); ++v) {
    if (is_before_[v]) record_.before.emplace_back(std::int32_t(v), before_[v]);
    know(v, before_[v]);  // of a slot that the step has written, its hash is not asked for again
  }
  for (std::size_t e = 0; e < entries().size(); ++e) {
    if (entries()[e].kind != StepEntry::Kind::kVariable) continue;
    know(std::size_t(entries()[e].index), record_.hashes[e]);
  }
  std::erase_if(recorder_.known_, [](const auto& one) { return one.first.expired(); });
}

void StepHashes::end(CompiledFunction& step, const ExecuteParams& call,
                     const std::vector<PerReplica<Array>>& outputs) {
  hash_outputs(step, call, outputs);
  hash_results(step, *call.hashes);
  add_up(call);
  remember(call);
  ++recorder_.next_;
}

}  // namespace samegrad
