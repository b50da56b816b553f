// Trace: the graph of the operations that user code applies. FunctionTrace and BodyTrace
// (graph_trace.h) trace functions, branches and loops; EagerTrace (eager_trace.h) runs each
// operation at once and records it for gradients.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/print_buffer.h"
#include "ir/builder.h"
#include "train/array_names.h"
#include "train/current.h"
#include "train/host.h"
#include "train/source_lines.h"
#include "train/tensor.h"
#include "train/variable_values.h"

namespace samegrad {

// The random state that determines the next samples, so that they can be drawn again.
struct DrawState {
  std::uint64_t step = 0;
  bool drew = false;         // the step number is the trace's own (of eager traces)
  std::int64_t ordinal = 0;  // of the next random op
};

// State of a traced function, which the traces of its branches and loops share with it.
struct FunctionState {
  explicit FunctionState(const Host& given) : host(given) {}

  const Host& host;
  std::vector<int> processes = {};  // over which the replicas are spread (Program::processes)
  // A trace of one replica has its collectives: any number of replicas may run the program later.
  bool keeps_collectives = false;
  // The line where the trace became the program of fewer replicas, or where it bound lengths.
  std::string split_at = {};
  DrawState draws = {};
};

class Trace : public Builder, public std::enable_shared_from_this<Trace> {
 public:
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const Graph& program() const { return graph_; }
  bool finished() const { return finished_; }
  int replicas() const { return graph_.replicas; }
  // Until a strategy runs in it, a trace is one of one replica.
  virtual void set_replicas(int replicas) { graph_.replicas = replicas; }
  const Host& host() const { return function_->host; }
  FunctionState& function() { return *function_; }
  const std::shared_ptr<FunctionState>& shared_function() const { return function_; }
  const FunctionState& function() const { return *function_; }
  DrawState& draws() { return function_->draws; }
  const DrawState& draws() const { return function_->draws; }
  VariableValues& variables() { return variables_; }
  const VariableValues& variables() const { return variables_; }

  Values apply(const OpDef& op, std::span<const Value> inputs, Attrs attrs = {},
               std::vector<GraphPtr> regions = {}) override;
  void begin_call(std::int32_t run = -1) override;
  void end_call(std::span<const Value> leaving = {}) override;
  std::size_t open_calls() const { return open_calls_; }
  // Adds the nodes that other traces have recorded for this one.
  virtual void import_followed() {}
  // Records the line where the trace became the program of fewer replicas, or where it bound
  // lengths. Called when that may have happened.
  void note_split();
  // samegrad::joined_type, by the sizes that this trace knows.
  std::optional<ValueType> joined_type(const ValueType& a, const ValueType& b);

  // RuntimeError if the tensor belongs to a trace that this one is not a part of.
  void check_inside(const Tensor& tensor) const;
  // True if the tensor is a value of this trace already.
  bool knows(const Tensor& tensor) const { return known(tensor).exists(); }
  // Returns the tensor as a value of this trace, which it stays at each later use.
  Value identify(const Tensor& tensor);
  // Returns the tensor as a value of this trace, which may be a new one.
  Value lift(const Tensor& tensor);
  virtual Tensor tensor(Value value) = 0;
  Value read(const std::shared_ptr<Variable>& variable);

  // The derivatives that user code gives of the operands, or the reason why it must not be asked.
  struct Gradients {
    std::vector<std::optional<Tensor>> of_operands;
    std::optional<Error> error;
  };
  // Makes the derivatives from the cotangents of the results.
  using GradientFunction = std::function<Gradients(const std::vector<Tensor>&)>;
  // Returns the values, with a derivative that `gradient` makes.
  Values with_gradient(const Values& values, const Values& operands,
                       const GradientFunction& gradient);

 protected:
  explicit Trace(std::shared_ptr<FunctionState> function);

  // The tensor's value in this trace, or kNoValue.
  Value known(const Tensor& tensor) const;
  virtual bool is_inside(const Trace& /*other*/) const { return false; }
  // Adds an array from outside.
  virtual Value bring_in(const Tensor& tensor) = 0;
  // Adds a read of a variable whose value the trace does not know.
  virtual Value read_first(const std::shared_ptr<Variable>& variable) = 0;
  // True if the variable still has the value.
  virtual bool is_current(Variable& /*variable*/, Value /*value*/) const { return true; }
  // Completes a node that has been added.
  virtual void complete(Node& node) = 0;
  virtual void add_gradient(const Values& results, const Values& operands,
                            const GradientFunction& gradient) = 0;
  // The symbols are as many replicas' as before (note_split).
  void keep_members() { members_ = graph_.symbols.replicas.size(); }

  Graph graph_;
  std::shared_ptr<FunctionState> function_;
  SourceLines lines_{function_->host, graph_};
  ArrayNames names_;
  VariableValues variables_;
  bool finished_ = false;

 private:
  std::size_t open_calls_ = 0;
  std::size_t members_ = 0;  // graph_.symbols.replicas, when that was last looked at
};

// Messages printed by eager operations of this thread.
PrintBuffer& eager_messages();

// An operation on whatever is current.
std::vector<Tensor> apply(const Host& host, const OpDef& op, std::span<const Tensor* const> inputs,
                          Attrs attrs);
std::vector<Tensor> apply(const Host& host, const OpDef& op, const std::vector<Tensor>& inputs,
                          Attrs attrs);

}  // namespace samegrad
