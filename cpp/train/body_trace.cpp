#include "base/error.h"
#include "ops/as_type.h"
#include "train/graph_trace.h"

namespace samegrad {

BodyTrace::BodyTrace(std::shared_ptr<GraphTrace> outer)
    : GraphTrace(outer->shared_function()), outer_(std::move(outer)) {
  graph_.replicas = outer_->replicas();
  graph_.symbols = outer_->program().symbols;
  keep_members();
}

void BodyTrace::set_replicas(int replicas) {
  GraphTrace::set_replicas(replicas);
  outer_->set_replicas(replicas);
}

PerReplica<Array> BodyTrace::evaluate(Value /*value*/, bool /*anywhere*/) {
  fail(ErrorKind::kType, "Tensor",
       "a branch or loop runs with the whole step, perhaps not at all or many times, so there is "
       "no value while Python describes it: look at what comes out of it, show values with "
       "samegrad.print, or let Python decide (samegrad.function(autograph=False)).");
}

bool BodyTrace::is_inside(const Trace& other) const {
  for (const GraphTrace* trace = outer(); trace; trace = trace->outer()) {
    if (trace == &other) return true;
  }
  return false;
}

Value BodyTrace::bring_in(const Tensor& tensor) {
  for (const GraphTrace* trace = outer(); trace; trace = trace->outer()) {
    if (trace->knows(tensor)) return capture(outer_->lift(tensor));
  }
  // Numbers can be arguments of a program outside. Large arrays enter once, outside branches and
  // loops.
  const bool is_number = tensor.array.shape().rank() == 0;
  if (is_number || tensor.array.bytes() > kLargeConstant) return capture(outer_->lift(tensor));
  const Value value = graph_.add_constant(tensor.array);
  graph_.values[value].counts = tensor.counts;
  return value;
}

Value BodyTrace::read_first(const std::shared_ptr<Variable>& variable) {
  return capture(outer_->read(variable));
}

Value BodyTrace::capture(Value outer) {
  for (const auto& [known, value] : captures_) {
    if (known == outer) return value;
  }
  const ValueInfo& info = outer_->program().values[outer];
  const Value value = graph_.add_argument(info.type, info.placement);
  captures_.emplace_back(outer, value);
  return value;
}

Value BodyTrace::leave_as(Value value, const ValueType& type) {
  if (this->type(value) == type) return value;
  adopt_symbols(*outer_);
  const Value result = as_type(*this, value, type);
  outer_->adopt_symbols(*this);
  return result;
}

Graph BodyTrace::finish(std::vector<Value> outputs, std::size_t own, const Values& captures) {
  finished_ = true;
  graph_.outputs = std::move(outputs);
  std::vector<Argument> arguments(graph_.arguments.begin(),
                                  graph_.arguments.begin() + std::ptrdiff_t(own));
  for (std::size_t i = 0; i < captures.size(); ++i) {
    const ValueInfo& info = outer_->program().values[captures[i]];
    arguments.push_back({info.placement});
    ValueInfo* here = nullptr;
    for (const auto& [known, value] : captures_) {
      if (known == captures[i]) here = &graph_.values[value];
    }
    if (!here) {
      graph_.values.push_back({info.type, Source::kArgument, -1, 0, info.placement});
      here = &graph_.values.back();
    }
    here->index = std::int32_t(own + i);
  }
  graph_.arguments = std::move(arguments);
  return std::move(graph_);
}

}  // namespace samegrad
