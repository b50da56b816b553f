// Value numbering over several graphs: values that are computed alike have one number.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ir/symbols.h"

namespace samegrad {

class ValueNumbers {
 public:
  // The graphs have the same arguments and variable slots. `symbols`, which begin with the counts
  // of the arguments, get all that the graphs know.
  ValueNumbers(std::vector<const Graph*> graphs, Symbols& symbols);

  std::size_t graphs() const { return graphs_.size(); }
  const Graph& graph(std::size_t g) const { return *graphs_[g]; }
  int of(std::size_t g, Value value) const { return numbers_[g][value]; }
  // The value of a graph that has the number; kNoValue if none has.
  Value at(std::size_t g, int number) const;
  // The info of the value with the number, in the first graph that has it.
  const ValueInfo& info(int number) const;
  std::size_t home(int number) const { return std::size_t(all_[std::size_t(number)].graph); }
  // In terms of the common symbols.
  const ValueType& type(int number) const { return all_[std::size_t(number)].type; }
  // A node whose attributes and regions are in terms of them.
  const Node& node(std::size_t g, NodeId index) const { return mapped_[g][index]; }

  // Given from outside, or computed alike in all graphs.
  bool common(int number) const;
  // A number that each branch has of its own.
  bool is_constant(int number) const;
  // The least number of ordered effects before it.
  int after(int number) const { return all_[std::size_t(number)].after; }
  // Nodes that run on all replicas together: collectives, what shows or checks values, and numbers
  // of elements on all replicas where traces took them to be others. Those with one place in the
  // order have one number.
  const std::vector<NodeId>& ordered_effects(std::size_t g) const { return anchors_[g]; }
  bool is_ordered_effect(std::size_t g, const Node& node) const;
  ValueType type_in(std::size_t g, Value value) { return maps_[g](graphs_[g]->type(value)); }

 private:
  struct NumberedValue {
    int graph = 0;
    Value value = kNoValue;
    ValueType type;
    int after = 0;
    std::size_t seen = 0;  // in how many graphs
    int last = -1;         // the last of them
    bool given = false;
  };
  struct NumberedNode {
    const Node* node;
    std::vector<int> inputs;
    int owner;
    std::vector<int> outputs;
  };

  void map_symbols(std::size_t g);
  bool counts_differ() const;
  void number_graph(std::size_t g);
  int number_of_source(std::size_t g, Value value);
  void number_node(std::size_t g, NodeId index);
  bool infers_alike(std::size_t g, const Node& node) const;
  const NumberedNode* find(std::uint64_t hash, const NumberedNode& wanted) const;
  int add(std::size_t g, Value value, int after);
  void see(std::size_t g, Value value, int number);

  std::vector<const Graph*> graphs_;
  Symbols& symbols_;
  std::vector<SymbolMap> maps_;
  std::vector<PerValue<int>> numbers_;
  std::vector<std::unordered_map<int, Value>> at_;
  std::vector<PerNode<Node>> mapped_;
  std::vector<std::vector<NodeId>> anchors_;
  bool counts_differ_ = false;  // numbers of elements on all replicas are anchors
  std::vector<NumberedValue> all_;
  std::unordered_map<std::string, int> sources_;
  std::unordered_multimap<std::uint64_t, NumberedNode> nodes_;
};

}  // namespace samegrad
