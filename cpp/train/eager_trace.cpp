#include "train/eager_trace.h"

#include <tuple>
#include <utility>

#include "ops/random_attributes.h"
#include "runtime/executor.h"
#include "train/random_state.h"

namespace samegrad {

EagerTrace::EagerTrace(const Host& host, int replicas)
    : Trace(std::make_shared<FunctionState>(host)) {
  graph_.replicas = replicas;
  draws().step = random_state().step;
}

Tensor EagerTrace::tensor(Value value) {
  std::optional<Array> array = array_of(value);
  if (!array) {
    materialize({value});
    array = array_of(value);
  }
  Tensor result;
  result.type = graph_.type(value);
  result.array = *std::move(array);
  result.type.shape = result.array.shape();
  const ArrayName name = names_.name_of(value);
  result.recorded = name.trace;
  result.value = name.value;
  return result;
}

EagerTrace::End EagerTrace::end() const {
  return {graph_.values.next_id(), graph_.nodes.next_id(), graph_.arguments.size(),
          graph_.constants.size(), graph_.calls.size(),    graph_.rereads.size(),
          gradients_.size()};
}

void EagerTrace::forget_from(const End& end) {
  names_.forget_from(end.value);
  variables_.forget_from(end.value);
  arrays_.erase(arrays_.lower_bound(end.value), arrays_.end());
  graph_.values.resize(end.value.index());
  graph_.nodes.resize(end.node.index());
  graph_.arguments.resize(end.arguments);
  graph_.constants.resize(end.constants);
  graph_.calls.resize(end.calls);
  graph_.rereads.resize(end.rereads);
  gradients_.resize(end.gradients);
}

std::optional<Array> EagerTrace::array_of(Value value) const {
  const auto known = arrays_.find(value);
  if (known != arrays_.end()) return known->second;
  const ValueInfo& info = graph_.values[value];
  if (info.source != Source::kConstant) return std::nullopt;
  return graph_.constants[info.constant()];
}

Value EagerTrace::operand(const Array& array, const ExampleAxis& batch) {
  const Value value = arguments_.add({array}, batch);
  arrays_[value] = array;
  return value;
}

Value EagerTrace::bring_in(const Tensor& tensor) {
  const Value value = operand(tensor.array, tensor.type.batch);
  names_.bind(tensor, value);
  return value;
}

Value EagerTrace::read_first(const std::shared_ptr<Variable>& variable) {
  return operand(variable->components()[0], {});
}

// Whoever writes gives the variable a new array, as this trace holds the old one.
bool EagerTrace::is_current(Variable& variable, Value value) const {
  return arrays_.at(value).raw() == variable.components()[0].raw();
}

void EagerTrace::complete(Node& node) {
  const bool checked = host().check_numerics;
  if (lines_.known() && !node.derivative && checked) node.location = lines_.current_index();
  const bool computes = !node.op->has(kControl) && !node.op->has(kGradientRule);
  if (computes && !runs_.is_open()) execute(node);
}

void EagerTrace::execute(const Node& node) {
  std::vector<ValueType> in_types, out_types;
  std::vector<Array> in;
  in_types.reserve(node.inputs.size());
  in.reserve(node.inputs.size());
  for (Value input : node.inputs) {
    in_types.push_back(graph_.type(input));
    in.push_back(tensor(input).array);
  }
  out_types.reserve(node.outputs.size());
  for (Value output : node.outputs) out_types.push_back(graph_.type(output));
  ReplicaContext replica_context;
  replica_context.seed = random_state().seed;
  replica_context.local_examples = replica_context.global_examples =
      traced_counts(graph_.symbols)[0];
  replica_context.first_example.assign(replica_context.local_examples.size(), 0);
  for (std::size_t s = 0; s < graph_.symbols.size(); ++s) {
    graph_.symbols[s].traced_count = replica_context.local_examples[s];
  }
  if (draws_by_step(*node.op) && !std::exchange(draws().drew, true)) {
    draws().step = random_state().step++;
  }
  replica_context.step = draws().step;
  replica_context.messages = &eager_messages();
  const std::vector<Array> out = run_op(node, in_types, out_types, in, replica_context);
  for (const Array& array : out) {
    if (!host().check_numerics) break;
    check_finite(node, {array.raw(), array.shape(), array.dtype()}, 0);
  }
  for (std::size_t i = 0; i < out.size(); ++i) arrays_[node.outputs[i]] = out[i];
}

std::shared_ptr<EagerTrace> current_eager_trace() {
  return std::dynamic_pointer_cast<EagerTrace>(current_trace());
}

}  // namespace samegrad
