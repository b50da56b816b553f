// Patterns: match a part of a graph, from a result back to its operands, and capture what is there.
//
//   Value x, bias;
//   const auto biased = op<"relu">(commuted<"add">(op<"matmul">(any(x)), any(bias)));
//   if (matches(graph, value, biased)) ...
//
// A pattern is a function of a graph and a value. Operands are matched in order, so that same() may
// name what an earlier operand captured. Captures are meaningful after a match only.
#pragma once

#include <tuple>
#include <utility>

#include "ir/op_def.h"
#include "ops/attributes.h"
#include "passes/rewrite.h"

namespace samegrad::pattern {

template <class P>
bool matches(const Graph& graph, Value value, const P& pattern) {
  return pattern(graph, value);
}

// Matches every value.
inline auto any() {
  return [](const Graph&, Value) { return true; };
}
// Captures the value.
inline auto any(Value& captured) {
  return [&captured](const Graph&, Value value) {
    captured = value;
    return true;
  };
}
// Matches the value that is or was captured.
inline auto same(const Value& captured) {
  return [&captured](const Graph&, Value value) { return value == captured; };
}

// Matches what the pattern matches, if `test(graph, value)` holds as well.
template <class P, class Test>
auto where(P pattern, Test test) {
  return [pattern, test](const Graph& graph, Value value) {
    return pattern(graph, value) && test(graph, value);
  };
}
// Matches what one of the patterns matches; the first is tried first.
template <class P, class Q>
auto either(P first, Q second) {
  return [first, second](const Graph& graph, Value value) {
    return first(graph, value) || second(graph, value);
  };
}
// Matches what the pattern matches, if nothing else reads it; `uses` is count_uses(graph).
template <class P>
auto once(const PerValue<int>& uses, P pattern) {
  return [&uses, pattern](const Graph& graph, Value value) {
    return uses[value] == 1 && pattern(graph, value);
  };
}

// Matches the result of a node; operands without a pattern are not looked at.
template <class Test, class... P>
class NodePattern {
 public:
  NodePattern(Test test, bool commutes, P... operands)
      : test_(test), commutes_(commutes), operands_(operands...) {}

  // Captures the node.
  NodePattern as(const Node*& node) const {
    NodePattern captures = *this;
    captures.node_ = &node;
    return captures;
  }

  bool operator()(const Graph& graph, Value value) const {
    const Node* node = graph.producer(value);
    if (!node || !test_(*node) || node->inputs.size() < sizeof...(P)) return false;
    const auto at = std::index_sequence_for<P...>();
    if (!match_operands(graph, *node, at, false) &&
        !(commutes_ && match_operands(graph, *node, at, true))) {
      return false;
    }
    if (node_) *node_ = node;
    return true;
  }

 private:
  template <std::size_t... kAt>
  bool match_operands(const Graph& graph, const Node& node, std::index_sequence<kAt...>,
                      bool reversed) const {
    return (std::get<kAt>(operands_)(graph, node.inputs[reversed ? sizeof...(P) - 1 - kAt : kAt]) &&
            ...);
  }

  Test test_;
  bool commutes_;
  std::tuple<P...> operands_;
  const Node** node_ = nullptr;
};

// A node for which `test(node)` holds.
template <class Test, class... P>
auto node(Test test, P... operands) {
  return NodePattern<Test, P...>(test, false, operands...);
}
// A node of the op: op<"matmul">(any(a), any(b)).
template <OpName kName, class... P>
auto op(P... operands) {
  return node([](const Node& node) { return is_op<kName>(node); }, operands...);
}
// A node of the op with its two operands in either order.
template <OpName kName, class P, class Q>
auto commuted(P first, Q second) {
  const auto test = [](const Node& node) { return is_op<kName>(node) && node.inputs.size() == 2; };
  return NodePattern<decltype(test), P, Q>(test, true, first, second);
}

// A constant of one element, equal to the number in the constant's type.
inline auto constant(double number) {
  return [number](const Graph& graph, Value value) {
    const ValueInfo& info = graph.values[value];
    if (info.source != Source::kConstant) return false;
    const Array& array = graph.constants[info.constant()];
    if (array.size() != 1) return false;
    const bool rounds = is_floating(array.dtype());
    return element(array, 0) ==
           (rounds ? element(Array::number(array.dtype(), number), 0) : number);
  };
}
// The number in each element: a constant, or a value that is filled with it.
inline auto number(double number) {
  const auto fills = [number](const Node& node) {
    return is_op<"full_like">(node) && node.attrs.as<FullAttrs>().value.as<double>() == number;
  };
  return either(constant(number), node(fills));
}

}  // namespace samegrad::pattern
