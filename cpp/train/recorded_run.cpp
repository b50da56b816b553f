// Runs of compiled steps under an eager tape.
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "ir/symbols.h"
#include "ops/as_type.h"
#include "train/compiled_function.h"
#include "train/copy_nodes.h"
#include "train/eager_trace.h"

namespace samegrad {
namespace {

// The part of a graph that makes some values out of known ones, as a program of its own.
class Subprogram {
 public:
  Subprogram(const Graph& from, const std::function<std::optional<Array>(Value)>& known)
      : from_(from),
        known_(known),
        symbols_(from.symbols, program_.symbols),
        map_(from.values.size(), kNoValue) {}

  Graph make(const Values& wanted) {
    PerNode<bool> needed(from_.nodes.size(), false);
    PerValue<bool> seen(from_.values.size(), false);
    Values open = wanted;
    while (!open.empty()) {
      const Value value = open.back();
      open.pop_back();
      const Node* node = from_.producer(value);
      if (seen[value] || !node || known_(value)) continue;
      seen[value] = true;
      needed[from_.nodes.id_of(*node)] = true;
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    }
    for (NodeId n : needed.ids()) {
      if (needed[n]) copy(n);
    }
    for (Value value : wanted) program_.outputs.push_back(operand(value));
    give_counts();
    return std::move(program_);
  }

  std::vector<PerReplica<Array>> arguments;
  NodeId first_node;

 private:
  Value operand(Value value) {
    Value& mapped = map_[value];
    if (mapped != kNoValue) return mapped;
    const ValueInfo& info = from_.values[value];
    if (info.source == Source::kConstant) {
      mapped = program_.add_constant(from_.constants[info.constant()]);
    } else {
      mapped = argument(value);
    }
    return mapped;
  }

  // Counts that only others are made of need an argument that has them.
  void give_counts() {
    for (std::size_t s = 0; s < from_.symbols.size(); ++s) {
      const bool input = from_.symbols[s].kind == Symbol::Kind::kInput;
      if (!input || !symbols_.knows(int(s)) || given_.count(int(s))) continue;
      for (Value v : from_.values.ids()) {
        if (given_.count(int(s))) break;
        const ValueType& type = from_.values[v].type;
        const bool has = type.batched() && type.batch.symbol == int(s);
        if (has && known_(v)) (void)argument(v);
      }
    }
  }

  Value argument(Value value) {
    const ValueType& type = from_.type(value);
    if (type.batched()) given_.insert(type.batch.symbol);
    arguments.push_back({*known_(value)});
    return program_.add_argument(symbols_(type));
  }

  void copy(NodeId index) {
    if (!first_node.exists()) first_node = index;
    Node node = symbols_(from_.nodes[index]);
    for (Value& input : node.inputs) input = operand(input);
    for (Value& output : node.outputs) {
      ValueInfo info = from_.values[output];
      info.type = symbols_(info.type);
      info.index = program_.nodes.next_id().number();
      const Value fresh = program_.values.push_back(info);
      // A result that is known stays what it is for whoever reads it.
      Value& mapped = map_[output];
      if (mapped == kNoValue) mapped = fresh;
      output = fresh;
    }
    if (node.location >= 0) {
      program_.locations.push_back(from_.locations[std::size_t(node.location)]);
      node.location = std::int32_t(program_.locations.size() - 1);
    }
    program_.nodes.push_back(std::move(node));
  }

  const Graph& from_;
  const std::function<std::optional<Array>(Value)>& known_;
  Graph program_;
  SymbolMap symbols_;
  PerValue<Value> map_;
  std::set<int> given_;  // symbols that an argument has
};

}  // namespace

std::int32_t RecordedRuns::add(std::uint64_t number) {
  numbers_.push_back(number);
  return std::int32_t(numbers_.size()) - 1;
}

std::int32_t RecordedRuns::run_of(const Graph& graph, NodeId node) {
  std::int32_t run = -1;
  for (const CallRange& call : graph.calls) {
    if (call.run >= 0 && call.begin <= node && node < call.end) run = call.run;
  }
  return run;
}

void RecordedRuns::open_call(std::int32_t run) {
  open_calls_.push_back(run);
  if (run >= 0) ++deferred_;
}

bool RecordedRuns::close_call() {
  const bool was_deferred = open_calls_.back() >= 0;
  open_calls_.pop_back();
  return was_deferred && --deferred_ == 0;
}

void EagerTrace::begin_call(std::int32_t run) {
  Trace::begin_call(run);
  runs_.open_call(run);
}

void EagerTrace::end_call(std::span<const Value> leaving) {
  Trace::end_call(leaving);
  if (!runs_.close_call()) return;
  Values values;
  for (Value value : leaving) {
    const Node* node = graph_.producer(value);
    if (!array_of(value) && !(node && node->op->has(kStacksResiduals))) values.push_back(value);
  }
  if (!values.empty()) materialize(values);
}

void EagerTrace::materialize(const Values& values) {
  const std::function<std::optional<Array>(Value)> known = [this](Value v) { return array_of(v); };
  Subprogram part(graph_, known);
  Graph program = part.make(values);
  const std::int32_t run = RecordedRuns::run_of(graph_, part.first_node);
  const std::uint64_t number = run < 0 ? 0 : runs_.number(run);
  CompiledFunction step({std::move(program), {}}, PlanOptions(), Sharing::kNumbers);
  std::vector<PerReplica<Array>> outputs;
  host().run_unlocked(
      [&] { outputs = step.repeat(part.arguments, host().check_numerics, number); });
  for (std::size_t i = 0; i < values.size(); ++i) arrays_[values[i]] = outputs[i][0];
}

void EagerTrace::compute(const Values& values) {
  std::map<std::int32_t, Values> by_run;
  for (Value value : values) {
    if (array_of(value)) continue;
    by_run[RecordedRuns::run_of(graph_, graph_.values[value].node())].push_back(value);
  }
  for (const auto& [run, of_run] : by_run) materialize(of_run);
}

EagerTrace::RunOperands EagerTrace::hold(const CompiledFunction& step,
                                         const std::vector<PerReplica<Tensor>>& arguments,
                                         const std::vector<Array>& constants) {
  RunOperands operands;
  for (const PerReplica<Tensor>& parts : arguments) {
    Values values;
    for (const Tensor& part : parts) values.push_back(lift(part));
    operands.arguments.push_back(std::move(values));
  }
  for (const std::shared_ptr<StateCell>& cell : step.binding().variables) {
    operands.variables.push_back(read(std::dynamic_pointer_cast<Variable>(cell)));
  }
  if (constants.empty()) return operands;
  std::unordered_map<const std::byte*, Value> by_memory;
  for (const auto& [value, array] : arrays_) by_memory[array.raw()] = value;
  for (const Array& constant : constants) {
    const auto found = by_memory.find(constant.raw());
    const bool same = found != by_memory.end() && constant.bytes() > 0 &&
                      arrays_[found->second].dtype() == constant.dtype() &&
                      arrays_[found->second].shape() == constant.shape();
    operands.constants.push_back(same ? found->second : kNoValue);
  }
  return operands;
}

// The caller's argument, or a constant of the program that its compiled form takes as an argument.
Value EagerTrace::argument_of(const CompiledFunction& step, const RunOperands& operands,
                              std::size_t index) {
  if (index < operands.arguments.size()) return operands.arguments[index][0];
  const std::size_t own = index - operands.arguments.size();
  const Value known = operands.constants[step.binding().taken[own].index()];
  return known != kNoValue ? known : graph_.add_constant(step.binding().constants[own]);
}

std::vector<PerReplica<Tensor>> EagerTrace::record(CompiledFunction& step,
                                                   const RunOperands& operands,
                                                   const std::vector<PerReplica<Array>>& outputs,
                                                   std::uint64_t number) {
  if (step.program().replicas > 1) return record_replicas(operands, step.program(), outputs);
  const Graph& from = step.pure();
  PerValue<Value> map(from.values.size(), kNoValue);
  for (Value v : map.ids()) {
    const ValueInfo& info = from.values[v];
    const auto index = std::size_t(info.index);
    if (info.source == Source::kArgument) {
      map[v] = argument_of(step, operands, index);
      // A size that this trace knows as a count of examples was a number to the program that ran.
      if (!info.type.batched()) map[v] = as_type(*this, map[v], info.type);
    }
    if (info.source == Source::kVariable) map[v] = operands.variables[index];
    if (info.source != Source::kConstant) continue;
    map[v] = operands.constants[index];
    if (map[v] == kNoValue) map[v] = graph_.add_constant(from.constants[info.constant()]);
  }
  const std::int32_t run = runs_.add(number);
  Builder::begin_call(run);  // NOLINT: not as a call of the user
  copy_nodes(from, NodeId(0), graph_, lines_, map, [run](std::int32_t) { return run; });
  Builder::end_call();  // NOLINT
  for (const StateWrite& read : from.rereads) {
    const StateCell* variable = step.binding().variables[read.variable.index()].get();
    variables_.add_read(*variable, map[read.value]);
  }
  std::vector<PerReplica<Tensor>> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value value = map[from.outputs[i]];
    if (!array_of(value)) arrays_[value] = outputs[i][0];
    results.push_back({tensor(value)});
  }
  return results;
}

// Gradients do not flow through a run on several replicas: its node says so if they should.
std::vector<PerReplica<Tensor>> EagerTrace::record_replicas(
    const RunOperands& operands, const Graph& program,
    const std::vector<PerReplica<Array>>& outputs) {
  Node node;
  node.op = &OpRegistry::instance().get("run_on_replicas");
  for (const Values& parts : operands.arguments) {
    node.inputs.insert(node.inputs.end(), parts.begin(), parts.end());
  }
  for (const Values* values : {&operands.variables, &operands.constants}) {
    for (Value value : *values) {
      if (value != kNoValue) node.inputs.push_back(value);
    }
  }
  std::vector<PerReplica<Tensor>> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ExampleAxis batch = program.type(program.outputs[i]).batch;
    for (const Array& array : outputs[i]) node.outputs.push_back(operand(array, batch));
  }
  const std::int32_t index = graph_.nodes.next_id().number();
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    ValueInfo& info = graph_.values[node.outputs[i]];
    info.source = Source::kNode;
    info.index = index;
    info.result = std::int32_t(i);
  }
  graph_.nodes.push_back(node);
  auto value = node.outputs.begin();
  for (const PerReplica<Array>& arrays : outputs) {
    results.emplace_back();
    for (std::size_t r = 0; r < arrays.size(); ++r) results.back().push_back(tensor(*value++));
  }
  return results;
}

}  // namespace samegrad
