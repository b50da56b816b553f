// Statistics: the predicted and the measured time of the steps of a plan.
#include <algorithm>

#include "runtime/executor.h"
#include "runtime/interrupt.h"
#include "runtime/rates.h"

namespace samegrad {
namespace {

// A variable of its own with the values of another.
class CopiedVariable final : public StateCell {
 public:
  explicit CopiedVariable(StateCell& from) {
    for (const Array& array : from.components()) components_.push_back(array.copy());
  }
  PerReplica<Array>& components() override { return components_; }

 private:
  PerReplica<Array> components_;
};

std::vector<std::shared_ptr<StateCell>> copies_of(const ExecuteParams& call) {
  std::vector<std::shared_ptr<StateCell>> copies;
  for (const std::shared_ptr<StateCell>& variable : call.variables) {
    copies.push_back(std::make_shared<CopiedVariable>(*variable));
  }
  return copies;
}

}  // namespace

std::vector<double> Executable::predict_steps(const Counts& counts, const Rates& rates) const {
  std::vector<double> predicted = predict(plan_, counts, rates);
  std::size_t s = 0;
  for (const PlanStep& step : plan_.steps) {
    double& with_bodies = predicted[s++];
    if (!step.is<ControlStep>()) continue;
    const double iterations = predict_iterations(plan_, step.nodes()[0], counts);
    for (const std::unique_ptr<Executable>& body : bodies_.at(step.nodes()[0])) {
      auto its_counts = counts;
      complete_counts(body->plan().graph.symbols, its_counts);
      for (double seconds : body->predict_steps(its_counts, rates)) {
        with_bodies += iterations * seconds;
      }
    }
  }
  return predicted;
}

Executable::ArenaBytes Executable::arena_bytes(const ExecuteParams& call) {
  ContextLease context(*this, call);
  const ArenaBytes bytes{(*context).arena_bytes(), (*context).unshared_bytes()};
  context.finish();
  return bytes;
}

RunStatistics Executable::statistics_of(const ExecuteParams& call, int runs) {
  const Rates rates = measured_rates();
  RunStatistics statistics;
  statistics.threads = rates.threads;
  statistics.predicted = predict_steps(call.counts, rates);
  const ArenaBytes arena = arena_bytes(call);
  statistics.arena_bytes = arena.planned;
  statistics.unshared_bytes = arena.unshared;
  ExecuteParams timed = call;
  std::vector<std::shared_ptr<StateCell>> copies;
  if (call.communicator) {
    timed.dry = true;  // variables of several processes may share memory
  } else if (runs > 0) {
    copies = copies_of(call);  // which steps update in place, as they do the variables
    timed.variables = copies;
  }
  for (int i = 0; i <= runs && runs > 0; ++i) {
    std::vector<StepUsage> usages;
    timed.usages = &usages;
    run(timed);
    poll_interrupt();
    if (i == 0) continue;  // with cold caches and memory that nobody has touched
    statistics.measured.resize(usages.size(), {0, 1e9});
    for (std::size_t s = 0; s < usages.size(); ++s) {
      StepTime& time = statistics.measured[s];
      time.mean += usages[s].seconds / runs;
      time.least = std::min(time.least, usages[s].seconds);
      time.shared = usages[s].shared;
    }
  }
  statistics.runs = runs;
  return statistics;
}

}  // namespace samegrad
