// Control-flow nodes: their regions, and how operands become arguments of these.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"
#include "ops/attributes.h"

namespace samegrad {

using Regions = std::span<const GraphPtr>;

// Regions of cond.
inline const Graph& true_branch(Regions regions) {
  return *regions[0];
}
inline const Graph& false_branch(Regions regions) {
  return *regions[1];
}
// Regions of while_loop.
inline const Graph& condition(Regions regions) {
  return *regions[0];
}
inline bool is_condition(const Node& node, std::size_t region) {
  return region == 0 && node.attrs.get_if<WhileAttrs>();
}
// The body of while_loop and replay.
inline const Graph& body(Regions regions) {
  return *regions.back();
}

// The number of values that a loop carries; 0 for other nodes.
inline std::size_t carried_values(const Node& node) {
  const auto* iterations = node.attrs.get_if<RoundsAttrs>();
  return iterations ? std::size_t(iterations->variables) : 0;
}

// The arguments of a control node's bodies: an entry of each history that a replay reads, the
// variables of a loop, and what the bodies read from outside. The operands have the same order,
// with a history in place of its entry. The results of a body: the variables, and an entry of each
// history that it makes.
struct ControlSignature {
  std::vector<std::size_t> entries = {0};  // the first argument of each history's entry; their end
  std::size_t carried = 0;                 // variables: results that the next iteration gets
  // The body's first result of an entry of each history that a replay makes; their end.
  std::vector<std::size_t> yields;
  std::size_t argument = 0, operand = 0;              // of the first variable
  std::size_t outer_argument = 0, outer_operand = 0;  // of the first value from outside

  explicit ControlSignature(const Node& node) : carried(carried_values(node)), yields{carried} {
    if (const auto* replay = node.attrs.get_if<ReplayAttrs>()) {
      for (std::int64_t size : replay->entries) {
        entries.push_back(entries.back() + std::size_t(size));
      }
      for (std::int64_t size : replay->yields) yields.push_back(yields.back() + std::size_t(size));
    }
    argument = entries.back();
    operand = entries.size() - 1;
    outer_argument = argument + carried;
    // The condition of branches is not an argument of theirs.
    outer_operand = node.attrs.get_if<CondAttrs>() ? 1 : operand + carried;
  }

  // The results of the body that are an entry of a history that a replay makes.
  std::span<const Value> yielded(const Graph& body, std::size_t history) const {
    return std::span(body.outputs).subspan(yields[history], yields[history + 1] - yields[history]);
  }
  bool is_carried(std::size_t at) const { return at >= argument && at < argument + carried; }
  // The operand that the argument is at first; kNone: what comes out of a history.
  static constexpr std::size_t kNone = std::size_t(-1);
  std::size_t operand_of(std::size_t at) const {
    if (is_carried(at)) return at - argument + operand;
    return at >= outer_argument ? at - outer_argument + outer_operand : kNone;
  }
};

}  // namespace samegrad
