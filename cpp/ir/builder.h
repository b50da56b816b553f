// Adds nodes to a graph, applying the shape rules.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace samegrad {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}
  virtual ~Builder() = default;

  // Appends a node and returns its results. Attributes that are not given are as their struct
  // starts; ValueError or TypeError where the op's rules are broken.
  virtual Values apply(const OpDef& op, std::span<const Value> inputs, Attrs attrs = {},
                       std::vector<GraphPtr> regions = {});
  Value operator()(std::string_view op, std::initializer_list<Value> inputs, Attrs attrs = {});
  Values many(std::string_view op, std::initializer_list<Value> inputs, Attrs attrs = {});
  // A 0-d constant of the dtype.
  virtual Value number(DType dtype, Scalar value);

  // The cotangents that a function of the program makes of those of its results, as its
  // gradient_by_call lists them; kNoValue: none. Only the trace that holds the function has it.
  virtual Values called_gradient(std::int64_t callback, const Values& cts);

  // Nodes added in between are a call, see CallRange. `leaving`: values that are used outside.
  virtual void begin_call(std::int32_t run = -1);
  virtual void end_call(std::span<const Value> leaving = {});

  // While it lives, nodes are derivatives of one that the user's program wrote at `location`.
  class Deriving {
   public:
    Deriving(Builder& b, std::int32_t location) : b_(b), before_(b.deriving_) {
      b.deriving_ = location;
    }
    ~Deriving() { b_.deriving_ = before_; }
    Deriving(const Deriving&) = delete;
    Deriving& operator=(const Deriving&) = delete;

   private:
    Builder& b_;
    std::optional<std::int32_t> before_;
  };

  Graph& graph() { return graph_; }
  const ValueType& type(Value value) const { return graph_.type(value); }

 private:
  Graph& graph_;
  std::optional<std::int32_t> deriving_;
  std::vector<std::size_t> open_calls_;  // of graph().calls
};

// The attributes, or, where none are given, what their struct starts with; TypeError if the op has
// another struct or requires one of them.
Attrs complete_attrs(const OpDef& op, Attrs attrs);
// TypeError unless they are as many as the op names.
void check_regions(const OpDef& op, std::size_t regions);
// TypeError unless the op takes so many operands.
void check_arity(const OpDef& op, std::size_t operands);

}  // namespace samegrad
