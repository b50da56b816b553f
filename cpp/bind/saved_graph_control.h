// Checks of programs read from a file: properties of operands and bodies that control-flow ops
// assume.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace samegrad {

// The values of a graph that are histories of iterations, by the types of an entry.
class Histories {
 public:
  // The histories that the region of a node knows, whose last arguments are the node's last
  // operands.
  Histories of_region(const Values& inputs, const Attrs& attrs, std::size_t arguments) const;
  // The value of an argument of a region.
  void enter(std::size_t argument, Value value);

  // ValueError unless operands, attributes and bodies of a node fit each other.
  void check(const OpDef& op, const Graph& graph, const Values& inputs, const Attrs& attrs,
             std::span<const GraphPtr> regions) const;
  // Notes the results of the node, the last one of the graph.
  void add(const Graph& graph);
  // ValueError if one of the values is a history, which no program returns.
  void check_none(const Values& values) const;

 private:
  struct HistoryType {
    std::vector<ValueType> types;
    std::int64_t rounds;  // how many, as shapes hold sizes; below 0: known when it runs
  };
  const HistoryType* find(Value value) const;
  void check_operands(const OpDef& op, const Values& inputs, const Attrs& attrs,
                      std::size_t captured) const;
  void check_rounds(const OpDef& op, const Graph& graph, const Values& inputs, const Attrs& attrs,
                    std::span<const GraphPtr> regions) const;
  void check_stack(const OpDef& op, const Graph& graph, const Values& inputs,
                   const Attrs& attrs) const;

  std::map<Value, HistoryType> entries_;
  std::map<std::size_t, HistoryType> arguments_;
  std::int64_t unknown_ = 0;
};

}  // namespace samegrad
