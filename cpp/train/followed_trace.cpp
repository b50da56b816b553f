// Eager tapes of different traces that record at one time: the nodes of the current trace become
// nodes of those below it.
#include <map>
#include <utility>

#include "ops/gradient_rule.h"
#include "train/copy_nodes.h"
#include "train/eager_trace.h"
#include "train/trace_scope.h"

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

void EagerTrace::follow(const std::shared_ptr<EagerTrace>& other) {
  other->import_followed();
  followed_.push_back({other, other->graph_.nodes.next_id(), other->graph_.values.next_id()});
}

void EagerTrace::unfollow(const EagerTrace& other) {
  for (std::size_t i = followed_.size(); i-- > 0;) {
    if (followed_[i].trace.get() != &other) continue;
    followed_.erase(followed_.begin() + std::ptrdiff_t(i));
    return;
  }
}

void EagerTrace::import_all() {
  const Importing importing(importing_);
  for (Followed& followed : followed_) import_from(followed);
}

void EagerTrace::import_from(Followed& followed) {
  EagerTrace& other = *followed.trace;
  other.import_followed();
  const Graph& from = other.graph_;
  const NodeId begin = std::exchange(followed.next, from.nodes.next_id());
  if (begin == from.nodes.next_id()) return;
  PerValue<Value> map(from.values.size(), kNoValue);
  const Values operands = operands_of(from, begin);
  other.compute(operands);
  for (Value value : operands) map[value] = lift(other.tensor(value));
  for (Value value : from.values.ids()) {
    if (map[value] == kNoValue) map[value] = names_.find(other.names_.name_of(value));
  }
  for (const auto& [variable, reads] : other.variables_.reads()) {
    for (Value read : reads) {
      if (read < followed.first || map[read] == kNoValue) continue;
      variables_.add_read_once(*variable, map[read]);
    }
  }
  const NodeId first = graph_.nodes.next_id();
  const Value first_value = graph_.values.next_id();
  std::map<std::int32_t, std::int32_t> runs;
  copy_nodes(from, begin, graph_, lines_, map, [&](std::int32_t run) {
    if (run < 0) return run;
    const auto [at, is_new] = runs.try_emplace(run, -1);
    if (is_new) at->second = runs_.add(other.runs_.number(run));
    return at->second;
  });
  for (Value value : from.values.ids()) {
    if (map[value] == kNoValue || map[value] < first_value) continue;
    names_.bind(other.names_.name_of(value), map[value]);
    const auto array = other.arrays_.find(value);
    if (array != other.arrays_.end()) arrays_[map[value]] = array->second;
  }
  for (NodeId n : IdRange<NodeId>(first, graph_.nodes.next_id())) {
    adopt_gradient(graph_.nodes[n], other);
  }
}

// The function that a rule calls is one of the trace's list.
void EagerTrace::adopt_gradient(Node& node, const EagerTrace& other) {
  const auto* called = node.attrs.get_if<CalledGradientAttrs>();
  if (!called || called->callback < 0) return;
  CalledGradientAttrs attrs = *called;
  gradients_.push_back(other.gradients_[std::size_t(attrs.callback)]);
  attrs.callback = std::int64_t(gradients_.size()) - 1;
  node.attrs = std::move(attrs);
  node.attrs.set_owner(node.op->name);
}

std::shared_ptr<TraceScope> EagerTrace::scope() {
  std::shared_ptr<TraceScope> scope = scope_.lock();
  if (!scope || current_trace().get() != this) {
    scope = std::make_shared<TraceScope>(shared_from_this());
    scope_ = scope;
  }
  return scope;
}

}  // namespace samegrad
