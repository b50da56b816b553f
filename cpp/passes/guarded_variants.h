// Guarded variants: a branch per trace, of which each replica runs that of its example count.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "passes/value_numbers.h"

namespace samegrad {

// A value that is another one in each trace: their numbers, and what they are as one.
struct GuardedValue {
  std::vector<int> numbers;
  int after = 0;  // the ordered effects that must have run before
  ValueType type = {};
  Value value = kNoValue;  // in the joined graph, once it is made
};

// The type that holds the values of all traces: sizes that differ become one that each replica has
// of its own. ValueError if there is none.
ValueType type_of_choice(const ValueNumbers& numbers, const std::vector<std::string>& who,
                         const GuardedValue& choice, Symbols& symbols);

// A size of each replica's own, where traces give it another one each.
std::int64_t own_size(const ValueNumbers& numbers, const std::vector<Size>& sizes,
                      Symbols& symbols);

// The inputs of the branches.
struct GuardedVariants {
  const ValueNumbers& numbers;
  std::string line;  // the user's, at which the traces part
  // The number of rows of each draw for which it differs, per graph and node.
  std::vector<std::map<NodeId, std::int64_t>> draws;
};

// Adds the branch that makes the choices to the builder's graph. `given` finds or makes what all
// traces have in common there.
void add_guarded_variants(const GuardedVariants& branches,
                          const std::vector<GuardedValue*>& choices, Builder& to,
                          const std::function<Value(int)>& given);

// Sizes that a body made, and counts that it is bound to, are known outside.
void adopt_symbols(Graph& outer, const Graph& body);

// Appends a node of one of the graphs, with its line.
Values append_node(Builder& to, const Graph& from, const Node& node, const Values& inputs);

}  // namespace samegrad
