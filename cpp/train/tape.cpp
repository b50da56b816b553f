#include "autodiff/gradient.h"
#include "base/error.h"
#include "train/trace.h"

namespace samegrad {

void Tape::check_alive() const {
  if (!trace_ || !trace_->finished()) return;
  fail(ErrorKind::kRuntime, "GradientTape",
       "it recorded inside a traced function that is over; make the tape and take its gradients in "
       "one call.");
}

void Tape::check_recorded() const {
  if (!trace_)
    fail(
        ErrorKind::kRuntime, "GradientTape.gradient",
        "nothing was recorded: compute the target inside `with samegrad.GradientTape() as tape:`.");
  check_alive();
}

void Tape::start() {
  check_value(!recording_, "GradientTape", "is already recording.");
  check_alive();
  std::shared_ptr<Trace> current = current_trace();
  if (!current) {
    current = trace_ ? trace_ : std::make_shared<Trace>(Trace::Mode::kEager, 1);
    push_trace(current);
    pushed_ = true;
  }
  if (trace_ && trace_ != current) {
    fail(ErrorKind::kRuntime, "GradientTape",
         "a tape records within one step or function; make a new one here.");
  }
  trace_ = current;
  recording_ = true;
  windows_.emplace_back(std::int32_t(trace_->program().nodes.size()), -1);
}

void Tape::stop() {
  if (!recording_) return;
  windows_.back().second = std::int32_t(trace_->program().nodes.size());
  recording_ = false;
  if (pushed_) pop_trace();
  pushed_ = false;
}

void Tape::watch(Tensor& tensor) {
  if (!trace_) fail(ErrorKind::kRuntime, "GradientTape.watch", "call it inside the `with` block.");
  check_alive();
  const Value value = trace_->lift(tensor);
  watched_.insert(value);
  if (tensor.symbolic()) return;
  // From now on it is this value of the trace, not a new operand at each use.
  tensor.recorded = trace_;
  tensor.value = value;
}

Tensor Tape::target(const std::shared_ptr<Variable>& variable) {
  check_recorded();
  return trace_->tensor(trace_->read(variable));
}

Values Tape::values_of(const Origin& source) {
  if (source.variable) return trace_->reads(*source.variable);
  const Value value = trace_->lift(*source.tensor);
  return is_watched(value) ? Values{value} : Values{};
}

// Watched itself, or computed from what is watched or from a variable, while the tape was
// recording.
bool Tape::is_watched(Value value) {
  if (watched_.count(value)) return true;
  const Graph& graph = trace_->program();
  const ValueInfo& info = graph.values[std::size_t(value)];
  if (info.source == Source::kVariable) return watch_variables_;
  if (info.source != Source::kNode) return false;
  for (const auto& [begin, end] : windows_) {
    if (info.index >= begin && (end < 0 || info.index < end)) return true;
  }
  return false;
}

std::vector<std::optional<Tensor>> Tape::gradient(const std::vector<Tensor>& targets,
                                                  const std::vector<std::optional<Tensor>>& seeds,
                                                  const std::vector<Origin>& sources) {
  if (used_ && !persistent_) {
    fail(ErrorKind::kRuntime, "GradientTape.gradient",
         "a tape that is not persistent gives gradients once; use GradientTape(persistent=True).");
  }
  check_recorded();
  used_ = true;
  const bool resume = current_trace() != trace_;
  if (resume) push_trace(trace_);
  std::vector<std::optional<Tensor>> results;
  try {
    Values target_values, seed_values, source_values;
    for (const Tensor& target : targets) target_values.push_back(trace_->lift(target));
    bool any_seed = false;
    for (const auto& seed : seeds) any_seed = any_seed || seed.has_value();
    for (std::size_t i = 0; any_seed && i < seeds.size(); ++i) {
      seed_values.push_back(seeds[i]
                                ? trace_->lift(*seeds[i])
                                : (*trace_)("full_like", {target_values[i]}, {{"value", 1.0}}));
    }
    std::vector<Values> grouped;
    for (const Origin& source : sources) {
      grouped.push_back(values_of(source));
      source_values.insert(source_values.end(), grouped.back().begin(), grouped.back().end());
    }
    const auto now = std::int32_t(trace_->program().nodes.size());
    const Values gradients =
        samegrad::gradient(*trace_, target_values, seed_values, source_values, [&](std::int32_t i) {
          for (const auto& [begin, end] : windows_) {
            if (i >= begin && i < (end < 0 ? now : end)) return true;
          }
          return false;
        });
    std::size_t next = 0;
    for (const Values& group : grouped) {
      Value sum = kNoValue;
      for (std::size_t i = 0; i < group.size(); ++i) {
        const Value part = gradients[next++];
        if (part == kNoValue) continue;
        sum = sum == kNoValue ? part : (*trace_)("add", {sum, part});
      }
      results.push_back(sum == kNoValue ? std::nullopt : std::optional(trace_->tensor(sum)));
    }
  } catch (...) {
    if (resume) pop_trace();
    throw;
  }
  if (resume) pop_trace();
  return results;
}

}  // namespace samegrad
