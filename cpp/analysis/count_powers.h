// Normalization degrees: the counts by which each value of a traced program was multiplied and
// divided, found in one walk.
#pragma once

#include <vector>

#include "ir/op_def.h"

namespace samegrad {

// A summand of a value: a product of counts and of a factor without counts. Such a factor is a row
// of an example, a part of a sum over the examples (local power 1), or a local mean (0). It may
// also be a number that all replicas have.
struct CountTerm {
  CountPowers powers;
  bool data = false;       // made of examples
  bool variable = false;   // made of variables
  bool varying = false;    // made of the replica's own examples, or their number
  bool means = false;      // was a local mean before it was summed over the replicas
  bool repeated = false;   // was equal on all replicas when it was summed over them
  bool ambiguous = false;  // was divided by a number that may be that of the replicas
  // The order of gradients: 1 in what the program computes of one, 2 in the derivative of that.
  std::uint8_t order = 0;
  // The node that divided by a count of the replica, or took a sum or mean over the replicas.
  NodeId origin;

  bool alike(const CountTerm& other) const;
  // A number that nothing is known of.
  bool is_plain() const { return alike({}); }
};

struct CountTerms {
  bool known = true;
  std::vector<CountTerm> terms;
  NodeId nonlinear;                 // the node that used a share as if it were the whole
  std::int8_t sizes_of_axis = kNo;  // of a vector of sizes: the axis that counts examples, or -1
  static constexpr std::int8_t kNo = -2;

  void add(const CountTerm& term);
};

class CountWalk {
 public:
  explicit CountWalk(const Graph& graph);

  const CountTerms& of(Value value) const { return found_[value]; }
  // The first node of the program that adds a term of variables alone to a share; or none.
  NodeId added_to_share() const { return added_to_share_; }

 private:
  CountTerms of_source(const ValueInfo& info) const;
  CountTerms of_node(NodeId index);
  // The terms of an operand, as the node reads it.
  CountTerms operand(NodeId index, std::size_t k) const;
  CountTerms by_rule(NodeId index, const std::vector<std::size_t>& scaled);
  CountTerms sum(NodeId index, const std::vector<std::size_t>& scaled);
  CountTerms choice(NodeId index, const std::vector<std::size_t>& scaled);
  CountTerms product(NodeId index, const std::vector<std::size_t>& scaled);
  CountTerms quotient(NodeId index, const CountTerms& above, std::size_t below);
  // One of as many as there are replicas.
  CountTerms share(NodeId index) const;
  CountTerms with_parameters(NodeId index, CountTerms result) const;
  CountTerms opaque(NodeId index) const;
  CountTerms count(const Node& node) const;
  CountTerms picked_size(const Node& node, std::int8_t axis) const;
  CountTerms all_reduced(NodeId index) const;
  void sum_examples(const Node& node, CountTerms& result) const;
  bool may_mean(Value value, double number) const;

  const Graph& graph_;
  PerValue<CountTerms> found_;
  NodeId added_to_share_;
};

}  // namespace samegrad
