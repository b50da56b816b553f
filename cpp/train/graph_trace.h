// Traces of functions, and of their branches and loops: operations become nodes of a graph and run
// later, as a program.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "analysis/replica_dependence.h"
#include "train/argument_symbols.h"
#include "train/normalization_log.h"
#include "train/partial_evaluator.h"
#include "train/program.h"
#include "train/trace.h"
#include "train/variable_slots.h"

namespace samegrad {

// A trace whose tensors are values of its graph.
class GraphTrace : public Trace {
 public:
  Tensor tensor(Value value) override;
  // RuntimeError if the variable is one for all replicas and the value may differ between them.
  void write(const std::shared_ptr<Variable>& variable, Value value);
  std::vector<std::shared_ptr<Variable>> written() const { return slots_.written(); }
  // Takes the sizes that another trace of the function made, and what they are bound to.
  void adopt_symbols(const GraphTrace& other);

  // The trace that a branch or loop is in; null: this is a function.
  virtual GraphTrace* outer() const { return nullptr; }
  // True if values can be evaluated while the function is traced.
  virtual bool evaluates() const = 0;
  // Evaluates a value in the present step. TypeError for values of a body, whose Python does not
  // run when the body does. TypeError as well while a body is traced, unless `anywhere`.
  virtual PerReplica<Array> evaluate(Value value, bool anywhere = false) = 0;

 protected:
  using Trace::Trace;
  void complete(Node& node) override;
  void add_gradient(const Values& results, const Values& operands,
                    const GradientFunction& gradient) override;
  // Adds a variable that the trace touches for the first time.
  virtual void add_slot(const Variable& /*variable*/) {}
  SlotId slot_of(const std::shared_ptr<Variable>& variable);

  VariableSlots slots_;
};

// The trace of a function, which becomes a program.
class FunctionTrace final : public GraphTrace {
 public:
  // `members`: it is the program of these replicas alone (Symbols::replicas).
  FunctionTrace(const Host& host, int replicas, std::vector<int> members = {});

  // Adds an argument; see ArgumentSymbols. Bodies that are being traced know its sizes.
  Value argument(const PerReplica<Array>& arrays, const ExampleAxis& batch,
                 std::uint32_t lengths = 0, bool own_symbol = false);
  // The program with these results; the trace is over.
  Program finish(std::vector<Value> outputs);

  // Lets values be evaluated: the function is called with these arguments.
  void let_evaluate(std::vector<PerReplica<Array>> arguments) {
    evaluator_.start(std::move(arguments));
  }
  bool evaluates() const override { return evaluator_.ready(); }
  PerReplica<Array> evaluate(Value value, bool anywhere = false) override;
  // Returns the value of the first replica in the present step, as a variable's initial value.
  // ValueError for values of a body; see PartialEvaluator::initial_value().
  Array initial_value(const Tensor& tensor, const std::vector<PerReplica<Array>>& arguments,
                      bool given) const;

  // Notes what the program does with a value, for check_loss_normalization().
  void use(ValueUse::Kind kind, const Tensor& tensor);
  // The mistakes in the counts that the program divides by; `outputs` are its results.
  NormalizationReport check_loss_normalization(const Values& outputs) const {
    return log_.check(graph_, outputs);
  }
  // Statistics of a replica's examples that reach a variable that all replicas share.
  std::vector<ReplicaDependence> replica_dependences() const;

 private:
  Value bring_in(const Tensor& tensor) override;
  Value read_first(const std::shared_ptr<Variable>& variable) override;
  void add_slot(const Variable& variable) override;

  ArgumentSymbols arguments_{graph_};
  std::vector<std::pair<Array, Value>> large_constants_;
  PartialEvaluator evaluator_{graph_, slots_, *function_};
  NormalizationLog log_;
};

// The trace of a branch or of the body of a loop. The values of the outer trace that it reads are
// captured: they become arguments.
class BodyTrace final : public GraphTrace {
 public:
  explicit BodyTrace(std::shared_ptr<GraphTrace> outer);

  GraphTrace* outer() const override { return outer_.get(); }
  void set_replicas(int replicas) override;
  bool evaluates() const override { return outer_->evaluates(); }
  PerReplica<Array> evaluate(Value value, bool anywhere = false) override;

  // The captured values of the outer trace, with the arguments that represent them.
  const std::vector<std::pair<Value, Value>>& captures() const { return captures_; }
  Value add_argument(const ValueType& type, Placement placement) {
    return graph_.add_argument(type, placement);
  }
  // Converts a result to a type that the outer trace knows.
  Value leave_as(Value value, const ValueType& type);
  // The body with these results, as a graph of `own` arguments and then one for each of the given
  // values of the outer trace.
  Graph finish(std::vector<Value> outputs, std::size_t own, const Values& captures);

 private:
  bool is_inside(const Trace& other) const override;
  Value bring_in(const Tensor& tensor) override;
  Value read_first(const std::shared_ptr<Variable>& variable) override;
  Value capture(Value outer);

  std::shared_ptr<GraphTrace> outer_;
  std::vector<std::pair<Value, Value>> captures_;
};

// The trace of this thread, if it traces a graph; else null.
std::shared_ptr<GraphTrace> current_graph_trace();
// The trace of this thread. RuntimeError if it traces no graph; `op_name` is for the message.
std::shared_ptr<GraphTrace> traced_graph(const char* op_name);

}  // namespace samegrad
