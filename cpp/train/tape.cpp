#include "train/tape.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "autodiff/gradient.h"
#include "autodiff/gradient_rule.h"
#include "base/error.h"
#include "ops/attributes.h"
#include "train/eager_trace.h"

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

void Tape::close_window() {
  if (!std::exchange(recording_, false)) return;
  trace_->import_followed();
  windows_.back().second = trace_->program().nodes.next_id();
}

bool Tape::in_window(NodeId node) const {
  for (const auto& [begin, end] : windows_) {
    if (node >= begin && (!end.exists() || node < end)) return true;
  }
  return false;
}

void Tape::start() {
  SG_CHECK_VALUE(!recording_, "GradientTape", "is already recording.");
  check_alive();
  const std::shared_ptr<Trace> found = current_trace();
  const bool again = trace_ != nullptr;
  if (!again) trace_ = found ? found : std::make_shared<EagerTrace>(host_, 1);
  const auto eager = std::dynamic_pointer_cast<EagerTrace>(trace_);
  if (found && found != trace_ && !(eager && current_eager_trace())) {
    fail(ErrorKind::kRuntime, "GradientTape",
         "a tape records within one step or function; make a new one here.");
  }
  trace_->import_followed();
  std::shared_ptr<TraceScope> scope = eager ? eager->scope() : nullptr;
  if (again && scope && scope->has_follower()) trace_->variables().forget();
  open_window();
  scope_ = std::move(scope);
}

void Tape::stop() {
  const std::shared_ptr<TraceScope> scope = std::exchange(scope_, nullptr);
  close_window();
  if (scope && scope.use_count() == 1) scope->import();
}

void Tape::reset() {
  used_ = false;
  watched_.clear();
  windows_.clear();
  if (!recording_) {
    trace_.reset();
    return;
  }
  if (scope_ && scope_.use_count() == 1) {
    const auto fresh = std::make_shared<EagerTrace>(host_, 1);
    trace_ = fresh;
    scope_->replace(fresh);
  }
  open_window();
}

Tape::Pause::Pause(Tape& tape) : tape_(tape), was_recording_(tape.recording_) {
  tape.windows_.reserve(tape.windows_.size() + 1);  // the end of the pause may not fail
  const bool others = tape.scope_ && (tape.scope_.use_count() > 1 || tape.scope_->has_follower());
  if (tape.scope_ && !others) quiet_.emplace(with_trace(nullptr));
  tape.close_window();
}

Tape::Pause::~Pause() {
  quiet_.reset();
  if (!was_recording_ || tape_.recording_) return;
  try {
    tape_.trace_->import_followed();
  } catch (...) {  // comes again where somebody asks for what was not imported
  }
  tape_.open_window();
}

void Tape::watch(const Tensor& tensor) {
  if (!trace_) fail(ErrorKind::kRuntime, "GradientTape.watch", "call it inside the `with` block.");
  check_alive();
  const Value value = trace_->identify(tensor);
  watched_.emplace_back(trace_->program().nodes.next_id(), value);
}

std::vector<std::shared_ptr<Variable>> Tape::reads_since(std::size_t count) {
  if (!trace_) return {};
  check_alive();
  trace_->import_followed();
  const auto& reads = trace_->variables().counted();
  return {reads.begin() + std::ptrdiff_t(std::min(count, reads.size())), reads.end()};
}

Tensor Tape::target(const std::shared_ptr<Variable>& variable) {
  check_recorded();
  return trace_->tensor(trace_->read(variable));
}

Values Tape::values_of(const Origin& source, const Values& targets, const PerValue<bool>& tracked) {
  if (source.variable) return trace_->variables().reads(*source.variable);
  const Value value = trace_->lift(*source.tensor);
  const bool known = tracked.contains(value) && tracked[value];
  const bool itself = std::ranges::find(targets, value) != targets.end();
  return known || itself ? Values{value} : Values{};
}

PerValue<bool> Tape::tracked(PerNode<bool>& missed) const {
  const Graph& graph = trace_->program();
  PerValue<bool> tracked(graph.values.size(), false), late(graph.values.size(), false);
  for (const auto& [variable, reads] : trace_->variables().reads()) {
    for (Value read : reads) tracked[read] = true;
  }
  for (const auto& [when, value] : watched_) late[value] = true;
  auto next = watched_.begin();
  for (NodeId n : graph.nodes.ids()) {
    for (; next != watched_.end() && next->first <= n; ++next) tracked[next->second] = true;
    if (!in_window(n)) continue;
    const Node& node = graph.nodes[n];
    const auto any = [&node](const PerValue<bool>& of) {
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.op->reads(k) && of[node.inputs[k]]) return true;
      }
      return false;
    };
    const bool seen = any(tracked);
    missed[n] = !seen && any(late);
    for (Value output : node.outputs) {
      tracked[output] = seen;
      late[output] = late[output] || missed[n];
    }
    if (!seen || !node.op->has(kGradientRule)) continue;
    for (std::size_t i = 0; i < ruled_results(node); ++i) tracked[node.inputs[i]] = true;
  }
  for (; next != watched_.end(); ++next) tracked[next->second] = true;
  return tracked;
}

Values Tape::seed_values(const std::vector<const Tensor*>& seeds, const Values& targets) {
  Values values;
  if (std::ranges::all_of(seeds, [](const Tensor* seed) { return !seed; })) return values;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    values.push_back(seeds[i] ? trace_->identify(*seeds[i])
                              : (*trace_)("full_like", {targets[i]}, FullAttrs{.value = 1.0}));
  }
  return values;
}

std::optional<Tensor> Tape::sum_of(std::span<const Value> parts) {
  Value sum = kNoValue;
  for (const Value part : parts) {
    if (part == kNoValue) continue;
    sum = sum == kNoValue ? part : (*trace_)("add", {sum, part});
  }
  return sum == kNoValue ? std::nullopt : std::optional(trace_->tensor(sum));
}

std::vector<std::optional<Tensor>> Tape::gradient(const std::vector<const Tensor*>& targets,
                                                  const std::vector<const Tensor*>& seeds,
                                                  const std::vector<Origin>& sources, bool again) {
  if (used_ && !persistent_ && !again) {
    fail(ErrorKind::kRuntime, "GradientTape.gradient",
         "a tape that is not persistent gives gradients once; use GradientTape(persistent=True).");
  }
  check_recorded();
  const auto eager = std::dynamic_pointer_cast<EagerTrace>(trace_);
  const bool recorded = !eager || eager->is_recorded();
  const TraceScope scope(trace_);
  trace_->import_followed();
  std::optional<EagerTrace::End> end;
  if (persistent_ && !recorded && !scope.has_follower()) end = eager->end();
  PerNode<bool> missed(trace_->program().nodes.size(), false);
  const PerValue<bool> tracked = this->tracked(missed);
  std::vector<std::optional<Tensor>> results;
  Values target_values, source_values;
  for (const Tensor* target : targets) target_values.push_back(trace_->identify(*target));
  const Values seeded = seed_values(seeds, target_values);
  std::vector<std::size_t> ends;
  for (const Origin& source : sources) {
    std::ranges::copy(values_of(source, target_values, tracked), std::back_inserter(source_values));
    ends.push_back(source_values.size());
  }
  const NodeId now = trace_->program().nodes.next_id();
  const Values gradients = samegrad::gradient(
      *trace_, target_values, seeded, source_values,
      [&](NodeId i) { return i < now && in_window(i) && !(missed.contains(i) && missed[i]); });
  std::size_t begin = 0;
  for (const std::size_t end_of_source : ends) {
    results.push_back(sum_of(std::span(gradients).subspan(begin, end_of_source - begin)));
    begin = end_of_source;
  }
  used_ = true;
  scope.import();
  if (end) {  // nothing else reads the backward pass, and later gradients would walk it
    for (auto& result : results) {
      if (result) result->recorded = 0;
    }
    eager->forget_from(*end);
  }
  return results;
}

}  // namespace samegrad
