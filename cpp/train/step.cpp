#include "train/step.h"

#include <algorithm>
#include <atomic>
#include <list>

#include "base/error.h"
#include "passes/rewrite.h"
#include "train/random_state.h"

namespace samegrad {
namespace {

constexpr std::size_t kKeptSteps = 128;

bool fits(const ValueType& type, const Array& array) {
  if (array.dtype() != type.dtype || array.shape().rank() != type.shape.rank()) return false;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    if (type.shape[axis] != kRows && type.shape[axis] != array.shape()[axis]) return false;
  }
  return !type.batched() || array.shape()[type.batch.axis] % type.batch.rows_per_example == 0;
}

}  // namespace

Step::Step(Graph program, const PlanOptions& options)
    : program_(program), options_(options), executable_(compile(std::move(program), options)) {
  argument_types_.resize(program_.arguments.size());
  for (const ValueInfo& info : program_.values) {
    if (info.source == Source::kArgument) argument_types_[std::size_t(info.index)] = info.type;
  }
  for (const Symbol& symbol : program_.symbols) fixed_ = fixed_ || symbol.fixed;
}

void Step::check_argument(std::size_t index, const std::vector<Array>& arrays) const {
  const auto replicas = std::size_t(program_.replicas);
  check_value(arrays.size() == 1 || arrays.size() == replicas, "step", "argument ", index,
              " has values for ", arrays.size(), " replicas: the step runs on ", replicas, ".");
  for (const Array& array : arrays) {
    const ValueType& type = argument_types_[index];
    if (fits(type, array)) continue;
    fail(ErrorKind::kValue, "step", "argument ", index, " was traced as ", to_string(type),
         ": got ", name_of(array.dtype()), " ", to_string(array.shape()), ".");
  }
}

std::vector<std::vector<std::int64_t>> Step::counts_of(
    const std::vector<std::vector<Array>>& arguments) const {
  const auto replicas = std::size_t(program_.replicas);
  std::vector<std::vector<std::int64_t>> counts(
      replicas, std::vector<std::int64_t>(program_.symbols.size(), -1));
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const ExampleAxis& batch = argument_types_[a].batch;
    if (!batch.exists()) continue;
    const ExampleCounts examples = samegrad::counts_of(arguments[a], batch);
    for (std::size_t r = 0; r < replicas; ++r) {
      const std::int64_t n = examples[examples.size() == 1 ? 0 : r];
      std::int64_t& known = counts[r][std::size_t(batch.symbol)];
      check_value(known < 0 || known == n, "step",
                  "arguments that had equal numbers of examples "
                  "while the function was traced must keep them equal: argument ",
                  a, " has ", n, " where an earlier one has ", known, ".");
      known = n;
    }
  }
  for (auto& of_replica : counts) {
    for (std::size_t s = 0; s < of_replica.size(); ++s) {
      if (of_replica[s] < 0) of_replica[s] = program_.symbols[s].traced_count;
    }
  }
  complete_counts(program_.symbols, counts);
  return counts;
}

Executable& Step::executable(bool check_finite) {
  if (!check_finite) return executable_;
  std::call_once(unfused_once_, [this] {
    PlanOptions options = options_;
    options.passes.fuse_epilogue = options.passes.fuse_elementwise = false;
    options.write_in_place = false;  // any operation may stop the step
    unfused_ = std::make_unique<Executable>(compile(program_, options));
  });
  return *unfused_;
}

Call Step::call_of(const std::vector<std::vector<Array>>& arguments) const {
  check_value(arguments.size() == argument_types_.size(), "step", "takes ", argument_types_.size(),
              " arguments: got ", arguments.size(), ".");
  for (std::size_t a = 0; a < arguments.size(); ++a) check_argument(a, arguments[a]);
  Call call;
  call.counts = counts_of(arguments);
  call.arguments = arguments;
  call.seed = random_state().seed;
  return call;
}

std::vector<std::vector<Array>> Step::look(const std::vector<std::vector<Array>>& arguments) {
  Call call = call_of(arguments);
  call.step = std::atomic_ref<std::uint64_t>(random_state().step).load();
  return executable_.run(call);
}

std::vector<std::vector<Array>> Step::repeat(const std::vector<std::vector<Array>>& arguments,
                                             bool check_finite, std::uint64_t number) {
  Call call = call_of(arguments);
  call.check_finite = check_finite;
  call.step = number;
  return executable(check_finite).run(call);
}

const Graph& Step::pure() {
  std::call_once(pure_once_, [this] { pure_ = without_effects(program_); });
  return pure_;
}

Step::Result Step::run_numbered(const std::vector<std::vector<Array>>& arguments,
                                bool check_finite) {
  Call call = call_of(arguments);
  call.check_finite = check_finite;
  std::atomic_ref<std::uint64_t> counter(random_state().step);
  if (plan().has_random) call.step = counter.fetch_add(1);
  try {
    return {executable(check_finite).run(call), call.step};
  } catch (...) {
    // A step that fails changes nothing: unless other threads went on, its number is used again.
    std::uint64_t next = call.step + 1;
    if (plan().has_random) counter.compare_exchange_strong(next, call.step);
    throw;
  }
}

std::shared_ptr<Step> compile_step(Graph program, const PlanOptions& options) {
  // Guarded by the GIL, which every caller holds; most recent first.
  static auto* kept = new std::list<std::pair<std::uint64_t, std::shared_ptr<Step>>>;
  const std::uint64_t hash = hash_of(program);
  for (auto at = kept->begin(); at != kept->end(); ++at) {
    const bool same = at->first == hash && at->second->options() == options &&
                      same_program(at->second->program(), program);
    if (!same) continue;
    kept->splice(kept->begin(), *kept, at);
    return kept->front().second;
  }
  kept->emplace_front(hash, std::make_shared<Step>(std::move(program), options));
  if (kept->size() > kKeptSteps) kept->pop_back();
  return kept->front().second;
}

}  // namespace samegrad
