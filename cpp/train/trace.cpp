#include "train/trace.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "ops/as_type.h"
#include "ops/draws.h"
#include "train/at_once.h"
#include "train/check_numerics.h"
#include "train/random_state.h"

namespace samegrad {
namespace {

// The symbolic type of an array in a trace, given the symbol of its count of examples.
ValueType type_in_trace(const Array& array, ExampleAxis batch, int symbol) {
  ValueType type{array.dtype(), array.shape(), batch};
  if (batch.exists()) {
    type.shape[batch.axis] = kRows;
    type.batch.symbol = symbol;
  }
  return type;
}

}  // namespace

std::function<std::string()> Trace::locate;
std::function<void(const std::function<void()>&)> Trace::unlocked;

Messages& Trace::messages() {
  static thread_local Messages of_this_thread;
  return of_this_thread;
}

Tensor make_tensor(const Array& array, const ExampleAxis& batch) {
  Tensor tensor;
  tensor.type = {array.dtype(), array.shape(), batch};
  tensor.array = array;
  return tensor;
}

std::uint64_t Trace::next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

Trace::Trace(Mode mode, int replicas) : Builder(graph_), mode_(mode), number_(next_number()) {
  graph_.replicas = replicas;
  if (mode == Mode::kEager) step_ = random_state().step;
}

int Trace::symbol_for(const ExampleCounts& counts, bool own) {
  for (const auto& [symbol, known] : counts_of_symbol_) {
    if (!own && same_counts(known, counts)) return symbol;
  }
  Symbol symbol;
  symbol.traced_count = counts[0];
  if (counts.size() > 1) symbol.traced_total = std::accumulate(counts.begin(), counts.end(), 0ll);
  if (!same_counts({counts[0]}, counts)) symbol.traced_counts = counts;
  const int index = graph_.add_symbol(symbol);
  if (!own) counts_of_symbol_.emplace_back(index, counts);
  return index;
}

Value Trace::argument(const PerReplica<Array>& arrays, const ExampleAxis& batch,
                      std::uint32_t lengths, bool own_symbol) {
  const int symbol = batch.exists() ? symbol_for(counts_of(arrays.values(), batch), own_symbol) : 0;
  const bool differs = !arrays.is_shared() && graph_.replicas > 1;
  const Placement placement = !differs         ? Placement::kReplicated
                              : batch.exists() ? Placement::kRows
                                               : Placement::kOwn;
  ValueType type = type_in_trace(arrays[0], batch, symbol);
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    if (axis == batch.axis || !(lengths >> axis & 1u)) continue;
    Symbol length;
    length.kind = Symbol::Kind::kLength;
    length.traced_count = type.shape[axis];
    type.shape[axis] = kSymbols + graph_.add_symbol(length);
  }
  return graph_.add_argument(type, placement);
}

void Trace::check_inside(const Tensor& tensor) const {
  if (!tensor.symbolic() || tensor.trace.get() == this || is_inside(*tensor.trace)) return;
  fail(ErrorKind::kRuntime, "tensor",
       "this value belongs to a traced function that is not running here; return it from that "
       "function to use it outside.");
}

Value Trace::lift(const Tensor& tensor) {
  import_followed();
  const bool here = tensor.symbolic() && tensor.trace.get() == this;
  const Value value = here ? tensor.value : known(tensor);
  if (value != kNoValue) return value;
  check_inside(tensor);
  for (const Trace* outer = outer_.get(); outer; outer = outer->outer_.get()) {
    if (outer->knows(tensor)) return capture(outer_->lift(tensor));
  }
  if (mode_ == Mode::kGraph) return constant(tensor);
  const Value operand = argument({tensor.array}, tensor.type.batch);
  arrays_[operand] = tensor.array;
  name(tensor, operand);
  return operand;
}

Value Trace::identify(const Tensor& tensor) {
  const Value value = lift(tensor);
  if (!tensor.symbolic()) name(tensor, value);
  return value;
}

void Trace::name(const Tensor& tensor, Value value) {
  if (tensor.recorded != 0) return adopt({tensor.recorded, tensor.value}, value);
  tensor.recorded = number_;
  tensor.value = value;
}

bool Trace::knows(const Tensor& tensor) const {
  return tensor.symbolic() ? tensor.trace.get() == this : known(tensor) != kNoValue;
}

Value Trace::known(const Tensor& tensor) const {
  if (tensor.symbolic() || tensor.recorded == 0) return kNoValue;
  return known(Identity{tensor.recorded, tensor.value});
}

Value Trace::known(const Identity& identity) const {
  if (identity.first == number_) return identity.second;
  const auto found = known_.find(identity);
  return found == known_.end() ? kNoValue : found->second;
}

Trace::Identity Trace::identity(Value value) const {
  const auto adopted = identities_.find(value);
  return adopted == identities_.end() ? Identity{number_, value} : adopted->second;
}

void Trace::adopt(const Identity& identity, Value value) {
  if (identity.first == number_) return;
  known_[identity] = value;
  identities_.try_emplace(value, identity);
}

Value Trace::constant(const Tensor& tensor) {
  // Branches and iterations capture numbers, which can be arguments of a program outside.
  if (outer_ && tensor.array.shape().rank() == 0) return capture(outer_->lift(tensor));
  if (tensor.array.bytes() <= kLargeConstant) {
    const Value value = graph_.add_constant(tensor.array);
    graph_.values[value].counts = tensor.counts;
    return value;
  }
  // Large ones enter once, outside branches and loops: each call brings them.
  if (outer_) return capture(outer_->lift(tensor));
  for (const auto& [array, value] : large_constants_) {
    const bool same = array.raw() == tensor.array.raw() && array.dtype() == tensor.array.dtype() &&
                      array.shape() == tensor.array.shape();
    if (same) return value;
  }
  large_constants_.emplace_back(tensor.array, graph_.add_constant(tensor.array));
  return large_constants_.back().second;
}

Tensor Trace::tensor(Value value) {
  Tensor result;
  result.type = graph_.type(value);
  result.value = value;
  if (mode_ == Mode::kGraph) {
    result.trace = shared_from_this();
    return result;
  }
  std::optional<Array> array = array_of(value);
  if (!array) {
    materialize({value});
    array = array_of(value);
  }
  result.array = *std::move(array);
  result.type.shape = result.array.shape();
  std::tie(result.recorded, result.value) = identity(value);
  return result;
}

Values Trace::apply(const OpDef& op, std::span<const Value> inputs, Attrs attrs,
                    std::vector<GraphPtr> regions) {
  // One replica has nothing to reduce with.
  const bool plain = op.has(kCollective) && inputs.size() == 1 && op.vjp;
  if (plain && graph_.replicas == 1 && !keeps_collectives()) {
    (void)op.infer({op, std::vector<ValueType>{graph_.type(inputs[0])}, complete_attrs(op, attrs),
                    graph_.symbols});
    return Builder::apply(OpRegistry::instance().get("identity"), inputs);
  }
  Values outputs = Builder::apply(op, inputs, std::move(attrs), std::move(regions));
  note_split();
  Node& node = graph_.nodes.back();
  const bool eager = mode_ == Mode::kEager;
  if (locate && !node.derivative && (!eager || check_numerics)) node.location = location();
  const bool computes = !node.op->has(kControl) && !node.op->has(kGradientRule);
  if (eager && deferred_ == 0 && computes) execute(node);
  return outputs;
}

void Trace::note_split() {
  for (LengthGuard& guard : graph_.symbols.guards) {
    if (guard.location.empty() && locate) guard.location = locate();
  }
  const std::size_t members = graph_.symbols.replicas.size();
  if (std::exchange(members_, members) == members || members == 0) return;
  Trace* whole = this;
  while (whole->outer_) whole = whole->outer_.get();
  if (locate) whole->split_at_ = locate();
}

std::int32_t Trace::location() {
  const auto [at, fresh] = places_.try_emplace(locate(), std::int32_t(graph_.locations.size()));
  if (fresh) graph_.locations.push_back(at->first);
  return at->second;
}

void Trace::execute(const Node& node) {
  std::vector<ValueType> in_types, out_types;
  std::vector<Array> in;
  for (Value input : node.inputs) {
    in_types.push_back(graph_.type(input));
    in.push_back(tensor(input).array);
  }
  for (Value output : node.outputs) out_types.push_back(graph_.type(output));
  ReplicaContext replica_context;
  replica_context.seed = random_state().seed;
  replica_context.local_examples = replica_context.global_examples =
      traced_counts(graph_.symbols)[0];
  replica_context.first_example.assign(replica_context.local_examples.size(), 0);
  for (std::size_t s = 0; s < graph_.symbols.size(); ++s) {
    graph_.symbols[s].traced_count = replica_context.local_examples[s];
  }
  if (draws_by_step(*node.op) && !std::exchange(drew_, true)) step_ = random_state().step++;
  replica_context.step = step_;
  replica_context.messages = &messages();
  const std::vector<Array> out = run_op(node, in_types, out_types, in, replica_context);
  for (const Array& array : out) {
    if (!check_numerics) break;
    check_finite(node, {array.raw(), array.shape(), array.dtype()}, 0);
  }
  for (std::size_t i = 0; i < out.size(); ++i) arrays_[node.outputs[i]] = out[i];
}

Value Trace::read(const std::shared_ptr<Variable>& variable) {
  if (counts_reads_) counted_reads_.push_back(variable);
  const auto known = state_.find(variable.get());
  if (known != state_.end() && is_current(*variable, known->second)) {
    std::vector<Value>& reads = reads_[variable.get()];
    if (!reads.empty() && reads.back() == known->second) return known->second;
    // The value of a written variable is a source of its own: no gradient flows into the write.
    const Value fresh = (*this)("stop_gradient", {known->second});
    reads.push_back(fresh);
    return state_[variable.get()] = fresh;
  }
  if (outer_) {
    const Value value = capture(outer_->read(variable));
    reads_[variable.get()].push_back(value);
    return state_[variable.get()] = value;
  }
  const PerReplica<Array>& components = variable->components();
  Value value;
  if (mode_ == Mode::kEager) {
    value = argument({components[0]}, {});
    arrays_[value] = components[0];
  } else {
    value = graph_.add_read(slot_of(variable), {variable->dtype(), variable->shape(), {}});
  }
  reads_[variable.get()].push_back(value);
  return state_[variable.get()] = value;
}

SlotId Trace::slot_of(const std::shared_ptr<Variable>& variable) {
  const auto [at, is_new] = slots_.try_emplace(variable.get(), touched_.next_id());
  if (!is_new) return at->second;
  touched_.push_back({variable, false});
  // A body has what it reads and writes as arguments and results.
  if (!outer_) graph_.variables.push_back({variable->name(), variable->component_count()});
  return at->second;
}

// In eager code whoever writes gives the variable a new array, as this trace holds the old one.
bool Trace::is_current(Variable& variable, Value value) const {
  return mode_ == Mode::kGraph || arrays_.at(value).raw() == variable.components()[0].raw();
}

void Trace::write(const std::shared_ptr<Variable>& variable, Value value) {
  const ValueType own{variable->dtype(), variable->shape(), {}}, type = graph_.type(value);
  check_type(type.dtype == own.dtype, variable->name(), "holds ", name_of(variable->dtype()),
             ": got ", name_of(type.dtype), "; convert the value with samegrad.cast.");
  check_value(joined_type(own, type).has_value(), variable->name(), "has shape ",
              to_string(own.shape), ": got a value of shape ", to_string(type.shape), ".");
  if (graph_.varying(value) && variable->component_count() == 1) {
    fail(ErrorKind::kRuntime, variable->name(),
         "is one variable for all replicas, but the value assigned to it may differ between them; "
         "reduce it first: replica_context.all_reduce(samegrad.distribute.ReduceOp.SUM, value).");
  }
  touched_[slot_of(variable)].second = true;
  state_[variable.get()] = as_type(*this, value, own);
}

void Trace::use(ValueUse::Kind kind, const Tensor& tensor) {
  // A body's values belong to another graph, which the check does not follow, and one replica has
  // nothing to divide.
  if (mode_ != Mode::kGraph || outer_ || graph_.replicas == 1) return;
  uses_.push_back({kind, lift(tensor), location()});
}

NormalizationReport Trace::check_loss_normalization(const std::vector<Value>& outputs) const {
  return samegrad::check_loss_normalization(graph_, outputs, uses_);
}

std::vector<ReplicaDependence> Trace::replica_dependences() const {
  Values sinks;
  for (const auto& [variable, written] : touched_) {
    // A variable with a value per replica is the program's way to keep what is local.
    if (written && variable->component_count() == 1) sinks.push_back(state_.at(variable.get()));
  }
  return replica_dependences_of(graph_, sinks);
}

std::optional<std::pair<std::string, Value>> Trace::made_of(Value value, Value old) const {
  const ValueInfo& info = graph_.values[value];
  if (info.source != Source::kNode) return std::nullopt;
  const Node& node = graph_.nodes[info.node()];
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return std::nullopt;
  if (node.inputs[0] == old) return std::pair{std::string(node.op->name), node.inputs[1]};
  if (node.inputs[1] == old) return std::pair{std::string(node.op->name), node.inputs[0]};
  return std::nullopt;
}

Program Trace::finish(std::vector<Value> outputs) {
  finished_ = true;
  counted_reads_.clear();
  actual_.reset();
  looked_.clear();
  large_constants_.clear();
  graph_.outputs = std::move(outputs);
  Program program;
  for (const auto& [variable, written] : touched_) {
    if (written) {
      const SlotId slot(program.variables.size());
      graph_.writes.push_back({slot, state_[variable.get()]});
      for (Value read : reads_[variable.get()]) {
        if (graph_.producer(read)) graph_.rereads.push_back({slot, read});
      }
    }
    program.variables.push_back(variable);
  }
  program.graph = std::move(graph_);
  program.processes = std::move(processes_);
  return program;
}

std::vector<Tensor> apply(const OpDef& op, std::span<const Tensor* const> inputs, Attrs attrs) {
  std::shared_ptr<Trace> trace = current_trace();
  if (!trace) {
    if (auto results = apply_at_once(op, inputs, attrs)) return *std::move(results);
    trace = std::make_shared<Trace>(Trace::Mode::kEager, 1);
  }
  Values values;
  for (const Tensor* input : inputs) values.push_back(trace->lift(*input));
  std::vector<Tensor> results;
  for (Value value : trace->apply(op, values, std::move(attrs))) {
    results.push_back(trace->tensor(value));
  }
  return results;
}

std::vector<Tensor> apply(const OpDef& op, const std::vector<Tensor>& inputs, Attrs attrs) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return apply(op, pointers, std::move(attrs));
}

}  // namespace samegrad
