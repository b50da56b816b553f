#include "train/compiled_function.h"

#include <atomic>

#include "base/error.h"
#include "ir/regions.h"
#include "passes/rewrite.h"
#include "runtime/world.h"
#include "tensor/non_addressable.h"
#include "train/collective_fingerprint.h"
#include "train/random_state.h"
#include "train/step_hashes.h"

namespace samegrad {
namespace {

bool fits(const ValueType& type, const Array& array) {
  if (array.dtype() != type.dtype || array.shape().rank() != type.shape.rank()) return false;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    if (type.shape[axis] != kBatchDim && type.shape[axis] != array.shape()[axis]) return false;
  }
  return !type.batched() ||
         array.shape()[type.batch.axis] % std::max<std::int64_t>(type.batch.rows_per_example, 1) ==
             0;
}

// In bodies, too: lines are numbered across all of them.
void set_locations(Graph& graph, const Locations& locations) {
  graph.locations = locations;
  for (Node& node : graph.nodes) {
    change_regions(node, [&](Graph& region) { set_locations(region, locations); });
  }
}

}  // namespace

CompiledFunction::CompiledFunction(Program program, const PlanOptions& options, Sharing sharing)
    : processes_(program.processes) {
  BoundProgram bound = compile_program(std::move(program), options, sharing);
  compiled_ = std::move(bound.compiled);
  binding_ = std::move(bound.binding);
  for (const Symbol& symbol : compiled_->graph().symbols) fixed_ = fixed_ || symbol.fixed;
  if (!processes_.empty()) fingerprint_ = fingerprint_of(plan());
}

Graph CompiledFunction::labelled(Graph graph) const {
  set_locations(graph, binding_.locations);
  for (SlotId v : graph.variables.ids()) {
    graph.variables[v].name = binding_.names[v.index()];
  }
  return graph;
}

const Graph& CompiledFunction::pure() {
  std::call_once(pure_once_, [this] { pure_ = labelled(without_effects(program())); });
  return pure_;
}

std::string CompiledFunction::program_text() const {
  return to_string(labelled(program()));
}

Explanation CompiledFunction::explanation(const Arguments* arguments, int runs) {
  SG_CHECK_VALUE(runs >= 0, "explain", "measure must be a number of runs, 0 or more: got ", runs,
                 ".");
  SG_CHECK_VALUE(arguments || runs == 0, "explain", "runs to measure need arguments: got none.");
  Arguments storage;
  ExecuteParams call;
  if (arguments) {
    call = call_of(*arguments, storage);
  } else {
    call.counts = counts_of(Arguments{});  // as traced
    keep_own(call, storage);
  }
  call.step = random_state().step;
  PrintBuffer messages;  // of the measured runs: shown to nobody
  call.messages = &messages;
  RunStatistics statistics = compiled_->executable(false).statistics_of(call, runs);
  PlanDraft of_plan = plan();
  of_plan.graph = labelled(std::move(of_plan.graph));
  return explain(labelled(program()), Plan(std::move(of_plan)), std::move(statistics));
}

std::vector<BitsReason> CompiledFunction::bits_reasons() const {
  return replica_dependences(labelled(program()), plan().graph);
}

void CompiledFunction::check_argument(std::size_t index, const PerReplica<Array>& arrays) const {
  const auto replicas = std::size_t(program().replicas);
  SG_CHECK_VALUE(arrays.size() == 1 || arrays.size() == replicas, "step", "argument ", index,
                 " has values for ", arrays.size(), " replicas: the step runs on ", replicas, ".");
  for (const Array& array : arrays) {
    const ValueType& type = compiled_->argument_types()[index];
    if (fits(type, array)) continue;
    fail(ErrorKind::kValue, "step", "argument ", index, " was traced as ", to_string(type),
         ": got ", name_of(array.dtype()), " ", to_string(array.shape()), ".");
  }
}

void CompiledFunction::check_bound(const Counts& counts) const {
  if (!fixed_) return;
  const Counts traced = counts_of_all(program().symbols);
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto& known = traced.at(r);
    for (std::size_t s = 0; s < known.size(); ++s) {
      SG_CHECK_VALUE(!program().symbols[s].fixed || counts[r][s] == known[s], "step",
                     "the program is bound to ", known[s], " examples on replica ", r,
                     ", whose number it looked at while it was traced: got ", counts[r][s],
                     "; trace it for these arguments.");
    }
  }
}

Counts CompiledFunction::counts_of(const std::vector<PerReplica<Array>>& arguments) const {
  const auto replicas = std::size_t(program().replicas);
  const std::vector<Symbol>& symbols = program().symbols;
  Counts counts(replicas, std::vector<std::int64_t>(symbols.size(), -1));
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const ExampleAxis& batch = compiled_->argument_types()[a].batch;
    if (!batch.exists()) continue;
    const PerReplica<std::int64_t> examples = samegrad::counts_of(arguments[a].values(), batch);
    for (std::size_t r = 0; r < replicas; ++r) {
      const std::int64_t n = examples.at(r);
      std::int64_t& known = counts[r][std::size_t(batch.symbol)];
      SG_CHECK_VALUE(known < 0 || known == n, "step",
                     "arguments that had equal numbers of examples "
                     "while the function was traced must keep them equal: argument ",
                     a, " has ", n, " where an earlier one has ", known, ".");
      known = n;
    }
  }
  for (std::size_t r = 0; r < replicas; ++r) {
    for (std::size_t s = 0; s < symbols.size(); ++s) {
      if (counts[r][s] < 0) counts[r][s] = symbols[s].traced_on(r);
    }
  }
  complete_counts(symbols, counts);
  check_bound(counts);
  return counts;
}

ExecuteParams CompiledFunction::call_of(const Arguments& arguments, Arguments& storage) const {
  const std::size_t own = binding_.constants.size();
  const std::size_t wanted = compiled_->argument_types().size() - own;
  SG_CHECK_VALUE(arguments.size() == wanted, "step", "takes ", wanted, " arguments: got ",
                 arguments.size(), ".");
  for (std::size_t a = 0; a < arguments.size(); ++a) check_argument(a, arguments[a]);
  ExecuteParams call;
  call.counts = counts_of(arguments);
  call.arguments = arguments;
  if (own > 0) {
    storage = arguments;
    for (const Array& constant : binding_.constants) storage.push_back({constant});
    call.arguments = storage;
  }
  keep_own(call, storage);
  call.variables = binding_.variables;
  call.locations = &binding_.locations;
  call.seed = random_state().seed;
  return call;
}

void CompiledFunction::keep_own(ExecuteParams& call, Arguments& storage) const {
  if (processes_.empty()) {
    for (const PerReplica<Array>& argument : call.arguments) {
      SG_CHECK_VALUE(
          !std::ranges::any_of(argument, is_non_addressable), "step",
          "other processes have a part of an argument, and no strategy runs in the "
          "function: call it in the scope of a MultiWorkerMirroredStrategy, or in its run.");
    }
    return;
  }
  call.communicator = &communicator_of(processes_);
  const ReplicaRange own = call.communicator->own();
  if (storage.empty()) storage.assign(call.arguments.begin(), call.arguments.end());
  for (PerReplica<Array>& argument : storage) {
    if (argument.size() > 1) {
      argument = {argument.begin() + own.begin, argument.begin() + own.end};
    }
  }
  call.arguments = storage;
  call.world_counts = std::move(call.counts);
  call.counts = {call.world_counts.begin() + own.begin, call.world_counts.begin() + own.end};
}

// On all ranks, or on none: what they have been told before they differed is told again.
std::vector<PerReplica<Array>> CompiledFunction::run_agreed(const ExecuteParams& call,
                                                            bool check_finite) {
  const ComparedFingerprints told(call);
  try {
    call.communicator->check_fingerprints(facts_of(*this, call, fingerprint_));
    return compiled_->executable(check_finite).run(call);
  } catch (...) {
    told.take_back();
    throw;
  }
}

std::vector<PerReplica<Array>> CompiledFunction::run_call(const ExecuteParams& call,
                                                          bool check_finite) {
  if (!call.communicator) return compiled_->executable(check_finite).run(call);
  Arguments outputs = run_agreed(call, check_finite);
  const ReplicaRange own = call.communicator->own();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value output = program().outputs[i];
    if (!program().varying(output)) continue;
    PerReplica<Array> parts;
    for (int r = 0; r < program().replicas; ++r) {
      const bool here = own.begin <= r && r < own.end;
      const ValueType& type = program().type(output);
      const auto at = std::size_t(r);
      parts.push_back(
          here ? outputs[i][std::size_t(r - own.begin)]
               : non_addressable_array(type.dtype, shape_or_empty(type, call.world_counts[at])));
    }
    outputs[i] = std::move(parts);
  }
  return outputs;
}

std::vector<PerReplica<Array>> CompiledFunction::evaluate(const Arguments& arguments) {
  Arguments storage;
  ExecuteParams call = call_of(arguments, storage);
  call.step = random_state().step;
  return run_call(call, false);
}

std::vector<PerReplica<Array>> CompiledFunction::repeat(const Arguments& arguments,
                                                        bool check_finite, std::uint64_t number) {
  Arguments storage;
  ExecuteParams call = call_of(arguments, storage);
  call.check_finite = check_finite;
  call.step = number;
  return run_call(call, check_finite);
}

CompiledFunction::RunResult CompiledFunction::run_numbered(const Arguments& arguments,
                                                           bool check_finite, PrintBuffer* messages,
                                                           StepHashes* hashes) {
  Arguments storage;
  ExecuteParams call = call_of(arguments, storage);
  call.check_finite = check_finite;
  call.messages = messages;
  std::atomic<std::uint64_t>& counter = random_state().step;
  if (plan().has_random) call.step = counter.fetch_add(1);
  try {
    if (hashes) hashes->begin(*this, call);
    RunResult result{run_call(call, check_finite), call.step};
    if (hashes) hashes->end(*this, call, result.outputs);
    return result;
  } catch (...) {
    // A step that fails changes nothing: unless other threads went on, its number is used again.
    std::uint64_t next = call.step + 1;
    if (plan().has_random) counter.compare_exchange_strong(next, call.step);
    throw;
  }
}

}  // namespace samegrad
