// Eager tapes of different traces that record at one time: the nodes of the current trace become
// nodes of those below it.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/gradient_rule.h"
#include "train/trace.h"

namespace samegrad {
namespace {

struct Importing {
  explicit Importing(bool& flag) : flag_(flag) { flag_ = true; }
  ~Importing() { flag_ = false; }
  Importing(const Importing&) = delete;
  Importing& operator=(const Importing&) = delete;

 private:
  bool& flag_;
};

// Return the values that nodes from `begin` on take from before it.
Values operands_of(const Graph& graph, NodeId begin) {
  PerValue<bool> seen(graph.values.size(), false);
  Values operands;
  for (NodeId n : IdRange<NodeId>(begin, graph.nodes.next_id())) {
    for (Value input : graph.nodes[n].inputs) {
      const ValueInfo& info = graph.values[input];
      const bool inside = info.source == Source::kNode && info.node() >= begin;
      if (inside || seen[input]) continue;
      seen[input] = true;
      operands.push_back(input);
    }
  }
  return operands;
}

}  // namespace

void Trace::follow(const std::shared_ptr<Trace>& other) {
  other->import_followed();
  followed_.push_back({other, other->graph_.nodes.next_id(), other->graph_.values.next_id()});
}

void Trace::unfollow(const Trace& other) {
  for (std::size_t i = followed_.size(); i-- > 0;) {
    if (followed_[i].trace.get() != &other) continue;
    followed_.erase(followed_.begin() + std::ptrdiff_t(i));
    return;
  }
}

void Trace::import_all() {
  const Importing importing(importing_);
  for (Followed& followed : followed_) import_from(followed);
}

void Trace::compute(const Values& values) {
  std::map<std::int32_t, Values> by_run;
  for (Value value : values) {
    if (array_of(value)) continue;
    const NodeId maker = graph_.values[value].node();
    std::int32_t run = -1;
    for (const CallRange& call : graph_.calls) {
      if (call.run >= 0 && call.begin <= maker && maker < call.end) run = call.run;
    }
    by_run[run].push_back(value);
  }
  for (const auto& [run, of_run] : by_run) materialize(of_run);
}

void Trace::import_from(Followed& followed) {
  Trace& other = *followed.trace;
  other.import_followed();
  const Graph& from = other.graph_;
  const NodeId begin = std::exchange(followed.next, from.nodes.next_id());
  if (begin == from.nodes.next_id()) return;
  PerValue<Value> map(from.values.size(), kNoValue);
  const Values operands = operands_of(from, begin);
  other.compute(operands);
  for (Value value : operands) map[value] = lift(other.tensor(value));
  for (Value value : from.values.ids()) {
    if (map[value] == kNoValue) map[value] = known(other.identity(value));
  }
  for (const auto& [variable, reads] : other.reads_) {
    for (Value read : reads) {
      if (read < followed.first || map[read] == kNoValue) continue;
      Values& here = reads_[variable];
      if (std::ranges::find(here, map[read]) == here.end()) here.push_back(map[read]);
    }
  }
  const NodeId first = graph_.nodes.next_id();
  const Value first_value = graph_.values.next_id();
  std::map<std::int32_t, std::int32_t> runs;
  copy_nodes(from, begin, map, [&](std::int32_t run) {
    if (run < 0) return run;
    const auto [at, fresh] = runs.try_emplace(run, std::int32_t(runs_.size()));
    if (fresh) runs_.push_back(other.runs_[std::size_t(run)]);
    return at->second;
  });
  for (Value value : from.values.ids()) {
    if (map[value] == kNoValue || map[value] < first_value) continue;
    adopt(other.identity(value), map[value]);
    const auto array = other.arrays_.find(value);
    if (array != other.arrays_.end()) arrays_[map[value]] = array->second;
  }
  for (NodeId n : IdRange<NodeId>(first, graph_.nodes.next_id())) {
    adopt_gradient(graph_.nodes[n], other);
  }
}

// The function that a rule calls is one of the trace's list.
void Trace::adopt_gradient(Node& node, const Trace& other) {
  const auto* called = node.attrs.get_if<CalledGradientAttrs>();
  if (!called || called->callback < 0) return;
  CalledGradientAttrs attrs = *called;
  gradients_.push_back(other.gradients_[std::size_t(attrs.callback)]);
  attrs.callback = std::int64_t(gradients_.size()) - 1;
  node.attrs = std::move(attrs);
  node.attrs.set_owner(node.op->name);
}

std::shared_ptr<TraceScope> Trace::scope() {
  std::shared_ptr<TraceScope> scope = scope_.lock();
  if (!scope || current_trace().get() != this) {
    scope = std::make_shared<TraceScope>(shared_from_this());
    scope_ = scope;
  }
  return scope;
}

TraceScope::TraceScope(std::shared_ptr<Trace> trace) : trace_(std::move(trace)) {
  std::shared_ptr<Trace> below = current_trace();
  const bool eager = below && below->mode() == Trace::Mode::kEager;
  if (eager && below != trace_ && trace_->mode() == Trace::Mode::kEager) {
    below->follow(trace_);
    below_ = std::move(below);
  }
  scope_.emplace(with_trace(trace_));
}

TraceScope::~TraceScope() {
  scope_.reset();
  if (below_) below_->unfollow(*trace_);
}

void TraceScope::replace(const std::shared_ptr<Trace>& fresh) {
  replace_current(trace_, fresh);
  if (below_) {
    below_->import_followed();
    below_->unfollow(*trace_);
    below_->follow(fresh);
  }
  trace_ = fresh;
}

}  // namespace samegrad
