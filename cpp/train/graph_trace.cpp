#include "train/graph_trace.h"

#include <utility>

#include "base/error.h"
#include "ops/as_type.h"

namespace samegrad {

Tensor GraphTrace::tensor(Value value) {
  Tensor result;
  result.type = graph_.type(value);
  result.value = value;
  result.trace = std::static_pointer_cast<GraphTrace>(shared_from_this());
  return result;
}

void GraphTrace::complete(Node& node) {
  if (lines_.known() && !node.derivative) node.location = lines_.current_index();
}

void GraphTrace::adopt_symbols(const GraphTrace& other) {
  Symbols& symbols = graph_.symbols;
  const Symbols& theirs = other.graph_.symbols;
  for (std::size_t s = 0; s < theirs.size(); ++s) {
    if (s == symbols.size()) symbols.push_back(theirs[s]);
    if (theirs[s].fixed) symbols[s].fixed = true;
    symbols[s].equal = theirs[s].equal;
  }
  symbols.guards = theirs.guards;
  symbols.replicas = theirs.replicas;
  keep_members();
}

SlotId GraphTrace::slot_of(const std::shared_ptr<Variable>& variable) {
  const auto [slot, is_new] = slots_.add(variable);
  if (is_new) add_slot(*variable);
  return slot;
}

void GraphTrace::write(const std::shared_ptr<Variable>& variable, Value value) {
  const ValueType own{variable->dtype(), variable->shape(), {}}, type = graph_.type(value);
  SG_CHECK_TYPE(type.dtype == own.dtype, variable->name(), "holds ", name_of(variable->dtype()),
                ": got ", name_of(type.dtype), "; convert the value with samegrad.cast.");
  SG_CHECK_VALUE(joined_type(own, type).has_value(), variable->name(), "has shape ",
                 to_string(own.shape), ": got a value of shape ", to_string(type.shape), ".");
  if (graph_.varying(value) && variable->component_count() == 1) {
    fail(ErrorKind::kRuntime, variable->name(),
         "is one variable for all replicas, but the value assigned to it may differ between them; "
         "reduce it first: replica_context.all_reduce(samegrad.distribute.ReduceOp.SUM, value).");
  }
  slots_.mark_written(slot_of(variable));
  variables_.set(*variable, as_type(*this, value, own));
}

FunctionTrace::FunctionTrace(const Host& host, int replicas, std::vector<int> members)
    : GraphTrace(std::make_shared<FunctionState>(host)) {
  graph_.replicas = replicas;
  graph_.symbols.replicas = std::move(members);
}

Value FunctionTrace::argument(const PerReplica<Array>& arrays, const ExampleAxis& batch,
                              std::uint32_t lengths, bool own_symbol) {
  const std::shared_ptr<GraphTrace> current = current_graph_trace();
  std::vector<GraphTrace*> bodies;
  GraphTrace* trace = current.get();
  for (; trace != nullptr && trace != this; trace = trace->outer()) bodies.push_back(trace);
  if (trace == nullptr) bodies.clear();  // those of another function
  if (!bodies.empty()) adopt_symbols(*bodies.front());
  const Value added = arguments_.add(arrays, batch, lengths, own_symbol);
  for (GraphTrace* body : bodies) body->adopt_symbols(*this);
  return added;
}

Value FunctionTrace::bring_in(const Tensor& tensor) {
  if (tensor.array.bytes() <= kLargeConstant) {
    const Value value = graph_.add_constant(tensor.array);
    graph_.values[value].counts = tensor.counts;
    return value;
  }
  // Large ones enter once: each call brings them.
  for (const auto& [array, value] : large_constants_) {
    const bool same = array.raw() == tensor.array.raw() && array.dtype() == tensor.array.dtype() &&
                      array.shape() == tensor.array.shape();
    if (same) return value;
  }
  large_constants_.emplace_back(tensor.array, graph_.add_constant(tensor.array));
  return large_constants_.back().second;
}

Value FunctionTrace::read_first(const std::shared_ptr<Variable>& variable) {
  return graph_.add_read(slot_of(variable), {variable->dtype(), variable->shape(), {}});
}

void FunctionTrace::add_slot(const Variable& variable) {
  graph_.variables.push_back({variable.name(), variable.component_count()});
}

PerReplica<Array> FunctionTrace::evaluate(Value value, bool anywhere) {
  const std::shared_ptr<GraphTrace> current = current_graph_trace();
  if (!anywhere && current && current->outer()) return current->evaluate(value);
  return evaluator_.evaluate(value);
}

Array FunctionTrace::initial_value(const Tensor& tensor,
                                   const std::vector<PerReplica<Array>>& arguments,
                                   bool given) const {
  SG_CHECK_VALUE(
      tensor.trace.get() == this, "Variable",
      "an initial value is computed once, when a function is traced: got a value of a "
      "branch or loop, which may run never or many times; create the variable outside of "
      "it.");
  return evaluator_.initial_value(tensor.value, arguments, given);
}

void FunctionTrace::use(ValueUse::Kind kind, const Tensor& tensor) {
  if (graph_.replicas == 1) return;  // nothing to divide by
  const Value value = lift(tensor);
  log_.add(kind, value, lines_.current_index());
}

std::vector<ReplicaDependence> FunctionTrace::replica_dependences() const {
  Values sinks;
  for (const auto& [variable, written] : slots_.all()) {
    // A variable with a value per replica is the program's way to keep what is local.
    if (written && variable->component_count() == 1) sinks.push_back(variables_.present(*variable));
  }
  return replica_dependences_of(graph_, sinks);
}

Program FunctionTrace::finish(std::vector<Value> outputs) {
  finished_ = true;
  variables_.end_count();
  evaluator_.stop();
  large_constants_.clear();
  graph_.outputs = std::move(outputs);
  Program program;
  for (const auto& [variable, written] : slots_.all()) {
    if (written) {
      const SlotId slot(program.variables.size());
      graph_.writes.push_back({slot, variables_.present(*variable)});
      for (Value read : variables_.reads(*variable)) {
        if (graph_.producer(read)) graph_.rereads.push_back({slot, read});
      }
    }
    program.variables.push_back(variable);
  }
  program.graph = std::move(graph_);
  program.processes = std::move(function_->processes);
  return program;
}

std::shared_ptr<GraphTrace> current_graph_trace() {
  return std::dynamic_pointer_cast<GraphTrace>(current_trace());
}

std::shared_ptr<GraphTrace> traced_graph(const char* op_name) {
  std::shared_ptr<GraphTrace> trace = current_graph_trace();
  if (!trace) fail(ErrorKind::kRuntime, op_name, "no function is being traced here.");
  return trace;
}

}  // namespace samegrad
