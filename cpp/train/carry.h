// Carry of a loop that is being traced: the values that each iteration takes and returns.
#pragma once

#include <memory>
#include <vector>

#include "train/graph_trace.h"

namespace samegrad {

// The loop variables, followed by the variables that the body writes. The first iteration may take
// another type than later ones (with or without an example axis, replicated or not). The body is
// then traced again until its results have the types that it takes.
class Carry {
 public:
  Carry(const char* op_name, std::shared_ptr<GraphTrace> outer,
        const std::vector<Tensor>& variables);

  std::size_t size() const { return initial_.size(); }
  // The number of values that are loop variables.
  std::size_t given() const { return given_; }
  const Values& initial() const { return initial_; }

  // The loop variables as arguments of a body, which has the written variables.
  std::vector<Tensor> add_to(BodyTrace& body) const;
  // Joins the loop variables that the traced body returns to those that it took, and appends the
  // written variables to them. Returns whether the body must be traced again. `differs`: replicas
  // make different numbers of iterations.
  bool join(BodyTrace& body, Values& returned, bool differs);
  // Assigns the written variables what they are after the loop.
  void write(const Values& results) const;

 private:
  void add(Value value);
  bool join_types(BodyTrace& body, Values& returned);

  const char* op_name_;
  std::shared_ptr<GraphTrace> outer_;
  std::size_t given_;
  Values initial_;
  std::vector<Placement> placements_;
  std::vector<std::shared_ptr<Variable>> written_;
};

}  // namespace samegrad
