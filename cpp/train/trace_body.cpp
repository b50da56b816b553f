// Traces of branches and loops, which read what is outside.
#include "base/error.h"
#include "ops/as_type.h"
#include "train/trace.h"

namespace samegrad {

Trace::Trace(std::shared_ptr<Trace> outer)
    : Builder(graph_), mode_(Mode::kGraph), number_(next_number()) {
  outer_ = std::move(outer);
  graph_.replicas = outer_->graph_.replicas;
  graph_.symbols = outer_->graph_.symbols;
  members_ = graph_.symbols.replicas.size();
}

void Trace::adopt_symbols(const Trace& body) {
  for (std::size_t s = 0; s < body.graph_.symbols.size(); ++s) {
    if (s == graph_.symbols.size()) graph_.symbols.push_back(body.graph_.symbols[s]);
    if (body.graph_.symbols[s].fixed) graph_.symbols[s].fixed = true;
    graph_.symbols[s].equal = body.graph_.symbols[s].equal;
  }
  graph_.symbols.guards = body.graph_.symbols.guards;
  graph_.symbols.replicas = body.graph_.symbols.replicas;
  members_ = graph_.symbols.replicas.size();
}

std::optional<ValueType> Trace::joined_type(const ValueType& a, const ValueType& b) {
  auto joined = samegrad::joined_type(graph_.symbols, a, b);
  note_split();
  return joined;
}

Value Trace::leave_as(Value value, const ValueType& type) {
  if (this->type(value) == type) return value;
  adopt_symbols(*outer_);
  const Value result = as_type(*this, value, type);
  outer_->adopt_symbols(*this);
  return result;
}

void Trace::set_replicas(int replicas) {
  graph_.replicas = replicas;
  if (outer_) outer_->set_replicas(replicas);
}

void Trace::set_processes(std::vector<int> processes) {
  if (outer_) return outer_->set_processes(std::move(processes));
  processes_ = std::move(processes);
}

void Trace::set_ordinal(std::int64_t ordinal) {
  if (outer_) {
    outer_->set_ordinal(ordinal);
  } else {
    ordinal_ = ordinal;
  }
}

bool Trace::is_inside(const Trace& other) const {
  for (const Trace* trace = outer_.get(); trace; trace = trace->outer_.get()) {
    if (trace == &other) return true;
  }
  return false;
}

Value Trace::capture(Value outer) {
  for (const auto& [known, value] : captures_) {
    if (known == outer) return value;
  }
  const ValueInfo& info = outer_->graph_.values[outer];
  const Value value = graph_.add_argument(info.type, info.placement);
  captures_.emplace_back(outer, value);
  return value;
}

std::vector<std::shared_ptr<Variable>> Trace::written() const {
  std::vector<std::shared_ptr<Variable>> variables;
  for (const auto& [variable, written] : touched_) {
    if (written) variables.push_back(variable);
  }
  return variables;
}

Value Trace::add_body_argument(const ValueType& type, Placement placement) {
  return graph_.add_argument(type, placement);
}

void Trace::preset(const std::shared_ptr<Variable>& variable, Value value) {
  reads_[variable.get()].push_back(value);
  state_[variable.get()] = value;
}

Graph Trace::finish_body(std::vector<Value> outputs, const Trace& outer, std::size_t own,
                         const std::vector<Value>& captures) {
  finished_ = true;
  graph_.outputs = std::move(outputs);
  std::vector<Argument> arguments(graph_.arguments.begin(),
                                  graph_.arguments.begin() + std::ptrdiff_t(own));
  for (std::size_t i = 0; i < captures.size(); ++i) {
    const ValueInfo& info = outer.graph_.values[captures[i]];
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
