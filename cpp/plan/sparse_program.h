// Constant propagation through a pass of a SparseUpdate, for rows without gradient.
#pragma once

#include <algorithm>
#include <map>

#include "ops/constant_propagation.h"
#include "plan/plan.h"

namespace samegrad {

struct SparseProgram {
  struct ScalarOperand {
    Value value;
    int at;
  };

  SparseProgram(const Graph& graph, const SparseUpdate& update, const SparsePass& pass) {
    for (const std::int32_t s : pass.sums) {
      const Value sum = update.sums[std::size_t(s)].result;
      at_[sum] = known.add_operand();
      zeros.emplace_back(at_[sum], LatticeValue::number_of(0.0, graph.type(sum).dtype));
    }
    const Shape& shape = graph.type(update.sums[0].result).shape;
    for (NodeId n : pass.nodes) {
      const Node& node = graph.nodes[n];
      std::vector<int> in;
      for (Value input : node.inputs) {
        const auto [place, is_new] = at_.emplace(input, -1);
        if (is_new) place->second = add_operand(graph, input, shape);
        in.push_back(place->second);
      }
      const std::vector<int> out = known.add(graph, node, in);
      for (std::size_t k = 0; k < out.size(); ++k) at_[node.outputs[k]] = out[k];
    }
  }

  // number_at(k): what is known of numbers[k].
  template <class NumberAt>
  void set_operands(std::span<LatticeValue> registers, const NumberAt& number_at) const {
    for (const auto& [at, zero] : zeros) registers[std::size_t(at)] = zero;
    for (const auto& [at, variable] : variables) {
      registers[std::size_t(at)] = LatticeValue::same_as(variable);
    }
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      registers[std::size_t(numbers[k].at)] = number_at(k);
    }
  }
  // The register of what is known of a value in rows without gradient.
  std::size_t register_of(Value value) const { return std::size_t(at_.at(value)); }
  // True if each variable stays as it is where the gradient is +0, once operands are set.
  bool leaves_rows_alone(const SparseUpdate& update, std::span<LatticeValue> registers) const {
    known.run(registers);
    return std::ranges::all_of(update.results, [&](const SparseUpdate::UpdatedVariable& result) {
      return result.variable.exists() && registers[register_of(result.value)] ==
                                             LatticeValue::same_as(result.variable.number());
    });
  }

  LatticeProgram known;
  std::vector<ScalarOperand> numbers;  // operands of one element
  std::vector<Value> whole;            // operands with all rows

 private:
  int add_operand(const Graph& graph, Value value, const Shape& shape) {
    const ValueInfo& info = graph.values[value];
    const int at = known.add_operand();
    if (info.type.shape != shape) {
      numbers.push_back({value, at});
      return at;
    }
    whole.push_back(value);
    if (info.source == Source::kVariable) variables.emplace_back(at, info.slot().number());
    return at;
  }

  std::map<Value, int> at_;                         // registers
  std::vector<std::pair<int, LatticeValue>> zeros;  // the sums
  std::vector<std::pair<int, int>> variables;       // register, variable
};

}  // namespace samegrad
