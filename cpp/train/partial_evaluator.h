// Partial evaluation: values that Python needs while a function is traced. The nodes that compute
// a value run as a program of their own, without writes and prints.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "train/program.h"
#include "train/trace.h"
#include "train/variable_slots.h"

namespace samegrad {

class PartialEvaluator {
 public:
  // Evaluates values of this graph, whose variables are the slots'.
  PartialEvaluator(const Graph& graph, const VariableSlots& slots, const FunctionState& function)
      : graph_(graph), slots_(slots), function_(function) {}

  // Begins, with the arguments of the present step.
  void start(std::vector<PerReplica<Array>> arguments) { arguments_ = std::move(arguments); }
  bool ready() const { return arguments_.has_value(); }
  void stop();

  // Returns the value in the present step.
  PerReplica<Array> evaluate(Value value);
  // Returns the first replica's value as a variable's initial value. The nodes run as a step of
  // their own. ValueError for values that depend on arguments which are not `given` but represent
  // others.
  Array initial_value(Value value, std::vector<PerReplica<Array>> arguments, bool given) const;

 private:
  // Returns the program that makes one value. Its arguments are those of the function and the
  // evaluated values, which are appended to `arguments`.
  Graph program_for(Value value, std::vector<PerReplica<Array>>& arguments) const;

  const Graph& graph_;
  const VariableSlots& slots_;
  const FunctionState& function_;
  std::optional<std::vector<PerReplica<Array>>> arguments_;
  std::map<Value, PerReplica<Array>> evaluated_;
};

}  // namespace samegrad
