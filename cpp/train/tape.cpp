#include "autodiff/gradient.h"
#include "base/error.h"
#include "ops/attributes.h"
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

void Tape::open_window() {
  windows_.emplace_back(trace_->program().nodes.next_id(), kNoNode);
  recording_ = true;
}

void Tape::close_window() noexcept {
  if (!recording_) return;
  windows_.back().second = trace_->program().nodes.next_id();
  recording_ = false;
}

void Tape::start() {
  check_value(!recording_, "GradientTape", "is already recording.");
  check_alive();
  std::shared_ptr<Trace> found = current_trace();
  const bool own = !found;
  if (own) found = trace_ ? trace_ : std::make_shared<Trace>(Trace::Mode::kEager, 1);
  if (trace_ && trace_ != found) {
    fail(ErrorKind::kRuntime, "GradientTape",
         "a tape records within one step or function; make a new one here.");
  }
  trace_ = found;
  open_window();
  if (own) scope_.emplace(with_trace(trace_));
}

void Tape::stop() {
  close_window();
  scope_.reset();
}

void Tape::reset() {
  used_ = false;
  watched_.clear();
  windows_.clear();
  if (!recording_) {
    trace_.reset();
    return;
  }
  if (scope_) {
    auto fresh = std::make_shared<Trace>(Trace::Mode::kEager, 1);
    replace_current(trace_, fresh);
    trace_ = std::move(fresh);
  }
  open_window();
}

Tape::Pause::Pause(Tape& tape) : tape_(tape), was_recording_(tape.recording_) {
  tape.windows_.reserve(tape.windows_.size() + 1);  // the end of the pause may not fail
  if (tape.scope_) quiet_.emplace(with_trace(nullptr));
  tape.close_window();
}

Tape::Pause::~Pause() {
  quiet_.reset();
  if (was_recording_ && !tape_.recording_) tape_.open_window();
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
  const ValueInfo& info = graph.values[value];
  if (info.source == Source::kVariable) return watch_variables_;
  if (info.source != Source::kNode) return false;
  for (const auto& [begin, end] : windows_) {
    if (info.node() >= begin && (!end.exists() || info.node() < end)) return true;
  }
  return false;
}

std::vector<std::optional<Tensor>> Tape::gradient(const std::vector<Tensor>& targets,
                                                  const std::vector<std::optional<Tensor>>& seeds,
                                                  const std::vector<Origin>& sources, bool again) {
  if (used_ && !persistent_ && !again) {
    fail(ErrorKind::kRuntime, "GradientTape.gradient",
         "a tape that is not persistent gives gradients once; use GradientTape(persistent=True).");
  }
  check_recorded();
  const Scope scope(with_trace(trace_));
  std::vector<std::optional<Tensor>> results;
  Values target_values, seed_values, source_values;
  for (const Tensor& target : targets) target_values.push_back(trace_->lift(target));
  bool any_seed = false;
  for (const auto& seed : seeds) any_seed = any_seed || seed.has_value();
  for (std::size_t i = 0; any_seed && i < seeds.size(); ++i) {
    seed_values.push_back(
        seeds[i] ? trace_->lift(*seeds[i])
                 : (*trace_)("full_like", {target_values[i]}, FullAttrs{.value = 1.0}));
  }
  std::vector<Values> grouped;
  for (const Origin& source : sources) {
    grouped.push_back(values_of(source));
    source_values.insert(source_values.end(), grouped.back().begin(), grouped.back().end());
  }
  const NodeId now = trace_->program().nodes.next_id();
  const Values gradients =
      samegrad::gradient(*trace_, target_values, seed_values, source_values, [&](NodeId i) {
        for (const auto& [begin, end] : windows_) {
          if (i >= begin && i < (end.exists() ? end : now)) return true;
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
  used_ = true;
  return results;
}

}  // namespace samegrad
