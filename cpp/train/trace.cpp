#include "train/trace.h"

#include <utility>

#include "train/eager.h"
#include "train/eager_trace.h"
#include "train/graph_trace.h"

namespace samegrad {

PrintBuffer& eager_messages() {
  static thread_local PrintBuffer of_this_thread;
  return of_this_thread;
}

Tensor make_tensor(const Array& array, const ExampleAxis& batch) {
  Tensor tensor;
  tensor.type = {array.dtype(), array.shape(), batch};
  tensor.array = array;
  return tensor;
}

Trace::Trace(std::shared_ptr<FunctionState> function)
    : Builder(graph_), function_(std::move(function)) {}

Values Trace::apply(const OpDef& op, std::span<const Value> inputs, Attrs attrs,
                    std::vector<GraphPtr> regions) {
  // One replica has nothing to reduce with.
  const bool plain = op.has(kCollective) && inputs.size() == 1 && op.vjp;
  if (plain && graph_.replicas == 1 && !function_->keeps_collectives) {
    (void)op.infer({op, std::vector<ValueType>{graph_.type(inputs[0])}, complete_attrs(op, attrs),
                    graph_.symbols});
    return Builder::apply(OpRegistry::instance().get("identity"), inputs);
  }
  Values outputs = Builder::apply(op, inputs, std::move(attrs), std::move(regions));
  note_split();
  complete(graph_.nodes.back());
  return outputs;
}

void Trace::begin_call(std::int32_t run) {
  Builder::begin_call(run);
  ++open_calls_;
}

void Trace::end_call(std::span<const Value> leaving) {
  Builder::end_call(leaving);
  --open_calls_;
}

void Trace::note_split() {
  for (LengthGuard& guard : graph_.symbols.guards) {
    if (guard.location.empty()) guard.location = lines_.current();
  }
  const std::size_t members = graph_.symbols.replicas.size();
  if (std::exchange(members_, members) == members || members == 0) return;
  function_->split_at = lines_.current();
}

std::optional<ValueType> Trace::joined_type(const ValueType& a, const ValueType& b) {
  auto joined = samegrad::joined_type(graph_.symbols, a, b);
  note_split();
  return joined;
}

Value Trace::known(const Tensor& tensor) const {
  if (!tensor.symbolic()) return names_.find(tensor);
  return tensor.trace.get() == this ? tensor.value : kNoValue;
}

void Trace::check_inside(const Tensor& tensor) const {
  if (!tensor.symbolic() || tensor.trace.get() == this || is_inside(*tensor.trace)) return;
  fail(ErrorKind::kRuntime, "tensor",
       "this value belongs to a traced function that is not running here; return it from that "
       "function to use it outside.");
}

Value Trace::lift(const Tensor& tensor) {
  import_followed();
  const Value value = known(tensor);
  if (value != kNoValue) return value;
  check_inside(tensor);
  return bring_in(tensor);
}

Value Trace::identify(const Tensor& tensor) {
  const Value value = lift(tensor);
  if (!tensor.symbolic()) names_.bind(tensor, value);
  return value;
}

Value Trace::read(const std::shared_ptr<Variable>& variable) {
  variables_.count_read(variable);
  const Value known = variables_.present(*variable);
  if (known == kNoValue || !is_current(*variable, known)) {
    return variables_.set_read(*variable, read_first(variable));
  }
  if (variables_.is_read(*variable)) return known;
  // The value of a written variable is a source of its own: no gradient flows into the write.
  return variables_.set_read(*variable, (*this)("stop_gradient", {known}));
}

Values Trace::with_gradient(const Values& values, const Values& operands,
                            const GradientFunction& gradient) {
  Values results;
  for (Value value : values) results.push_back((*this)("stop_gradient", {value}));
  add_gradient(results, operands, gradient);
  return results;
}

std::vector<Tensor> apply(const Host& host, const OpDef& op, std::span<const Tensor* const> inputs,
                          Attrs attrs) {
  std::shared_ptr<Trace> trace = current_trace();
  if (!trace) {
    if (auto results = dispatch_eager(host, op, inputs, attrs)) return *std::move(results);
    trace = std::make_shared<EagerTrace>(host, 1);
  }
  Values values;
  for (const Tensor* input : inputs) values.push_back(trace->lift(*input));
  std::vector<Tensor> results;
  for (Value value : trace->apply(op, values, std::move(attrs))) {
    results.push_back(trace->tensor(value));
  }
  return results;
}

std::vector<Tensor> apply(const Host& host, const OpDef& op, const std::vector<Tensor>& inputs,
                          Attrs attrs) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return apply(host, op, pointers, std::move(attrs));
}

}  // namespace samegrad
