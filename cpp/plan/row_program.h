// The update of a RowUpdate as what is known of it in rows without gradient.
#pragma once

#include <algorithm>
#include <map>

#include "ops/known.h"
#include "plan/plan.h"

namespace samegrad {

struct RowProgram {
  struct Number {
    Value value;
    int at;
  };

  RowProgram(const Graph& graph, const RowUpdate& update) {
    std::map<Value, int> at;
    for (const ReduceUpdate::Sum& sum : update.sums) {
      at[sum.result] = known.add_operand();
      zeros.push_back({sum.result, at[sum.result]});
      zero = KnownValue::number_of(0.0, graph.type(sum.result).dtype);
    }
    const Shape& shape = graph.type(update.sums[0].result).shape;
    for (NodeId n : update.nodes) {
      const Node& node = graph.nodes[n];
      std::vector<int> in;
      for (Value input : node.inputs) {
        const auto [place, is_new] = at.emplace(input, -1);
        if (is_new) place->second = add_operand(graph, input, shape);
        in.push_back(place->second);
      }
      const std::vector<int> out = known.add(graph, node, in);
      for (std::size_t k = 0; k < out.size(); ++k) at[node.outputs[k]] = out[k];
    }
    for (const RowUpdate::Result& result : update.results) {
      results.push_back({at.at(result.value), result.variable.number()});
    }
  }

  // number_at(k): what is known of numbers[k].
  template <class NumberAt>
  void set_operands(std::span<KnownValue> registers, const NumberAt& number_at) const {
    for (const Number& sum : zeros) registers[std::size_t(sum.at)] = zero;
    for (const auto& [at, variable] : variables) {
      registers[std::size_t(at)] = KnownValue::same_as(variable);
    }
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      registers[std::size_t(numbers[k].at)] = number_at(k);
    }
  }
  // Whether each variable stays as it is where the gradient is +0, once operands are set.
  bool leaves_rows_alone(std::span<KnownValue> registers) const {
    known.run(registers);
    return std::ranges::all_of(results, [&](const auto& result) {
      return registers[std::size_t(result.first)] == KnownValue::same_as(result.second);
    });
  }

  KnownProgram known;
  std::vector<Number> zeros;    // the sums
  std::vector<Number> numbers;  // operands of one element
  std::vector<Value> whole;     // operands with all rows
  KnownValue zero;

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

  std::vector<std::pair<int, int>> variables;  // register, variable
  std::vector<std::pair<int, int>> results;    // register, variable
};

}  // namespace samegrad
