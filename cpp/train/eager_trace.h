// Trace of eager code: each operation runs at once, and its node is recorded for the tapes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "train/argument_symbols.h"
#include "train/recorded_runs.h"
#include "train/trace.h"

namespace samegrad {

class CompiledFunction;
class TraceScope;

class EagerTrace final : public Trace {
 public:
  EagerTrace(const Host& host, int replicas);

  Tensor tensor(Value value) override;
  // An argument that stands for the array.
  Value operand(const Array& array, const ExampleAxis& batch);
  void begin_call(std::int32_t run = -1) override;
  void end_call(std::span<const Value> leaving = {}) override;
  Values called_gradient(std::int64_t callback, const Values& cts) override;

  // The values of this trace that a run of a compiled step reads. They stay the same when variables
  // change. `constants` are the arrays that the traced function found outside.
  struct RunOperands {
    std::vector<Values> arguments;
    Values variables, constants;  // kNoValue: none of this trace
  };
  RunOperands hold(const CompiledFunction& step, const std::vector<PerReplica<Tensor>>& arguments,
                   const std::vector<Array>& constants);
  // Makes the run one call of this trace. Its nodes are there for gradients and have no arrays; its
  // gradients are programs that compute again what they need, by the step's number.
  std::vector<PerReplica<Tensor>> record(CompiledFunction& step, const RunOperands& operands,
                                         const std::vector<PerReplica<Array>>& outputs,
                                         std::uint64_t number);

  // While another eager trace is current on top of this one, whose tapes are recording.
  // import_followed() makes nodes of this trace from what the other one records.
  void follow(const std::shared_ptr<EagerTrace>& other);
  void unfollow(const EagerTrace& other);
  void import_followed() override {
    if (!followed_.empty() && !importing_) import_all();
  }
  // The scope in which tapes record it: it is current as long as this object has an owner.
  std::shared_ptr<TraceScope> scope();
  bool is_recorded() const { return !scope_.expired(); }

  // The end of what is recorded; forget_from() drops what came later, with its arrays.
  struct End {
    Value value;
    NodeId node;
    std::size_t arguments, constants, calls, rereads, gradients;
  };
  End end() const;
  void forget_from(const End& end);

 private:
  Value bring_in(const Tensor& tensor) override;
  Value read_first(const std::shared_ptr<Variable>& variable) override;
  bool is_current(Variable& variable, Value value) const override;
  void complete(Node& node) override;
  void add_gradient(const Values& results, const Values& operands,
                    const GradientFunction& gradient) override;

  void execute(const Node& node);
  std::optional<Array> array_of(Value value) const;
  // Gives these values their arrays, in one program.
  void materialize(const Values& values);
  // Gives values of several runs their arrays, in one program per run.
  void compute(const Values& values);
  std::vector<PerReplica<Tensor>> record_replicas(const RunOperands& operands, const Graph& program,
                                                  const std::vector<PerReplica<Array>>& outputs);
  Value argument_of(const CompiledFunction& step, const RunOperands& operands, std::size_t index);

  // A trace on top of this one.
  struct Followed {
    std::shared_ptr<EagerTrace> trace;
    NodeId next;  // the first node that is not imported
    Value first;  // the first value that was made since
  };
  void import_all();
  void import_from(Followed& followed);
  void adopt_gradient(Node& node, const EagerTrace& other);

  ArgumentSymbols arguments_{graph_};
  std::map<Value, Array> arrays_;
  RecordedRuns runs_;
  std::vector<GradientFunction> gradients_;  // by callback (CalledGradientAttrs)
  std::vector<Followed> followed_;
  bool importing_ = false;
  std::weak_ptr<TraceScope> scope_;
};

// The trace of this thread, if it is an eager one; else null.
std::shared_ptr<EagerTrace> current_eager_trace();

}  // namespace samegrad
