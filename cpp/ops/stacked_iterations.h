// Attributes of the ops that stack values of iterations into histories, and unstack them.
#pragma once

#include "ir/graph.h"
#include "ops/attributes.h"

namespace samegrad {

// The arrays that the entries of a history make, each with a first axis of all iterations.
struct StackRoundsAttrs {
  std::int64_t rounds = 0;
  Ints dtypes = {};
  Ints ranks = {};
  Ints sizes = {};
  Ints examples = {};
  Ints placements = {};

  static constexpr auto fields() {
    return std::tuple(
        required("rounds", &StackRoundsAttrs::rounds, "How many rounds; may be a symbol."),
        required("dtypes", &StackRoundsAttrs::dtypes, "Of each array of an entry."),
        required("ranks", &StackRoundsAttrs::ranks, "Its axes in an entry."),
        required("sizes", &StackRoundsAttrs::sizes, "The sizes of those, one array after another."),
        required("examples", &StackRoundsAttrs::examples,
                 "Per array: the axis of an entry that counts examples (-1: none), the rows of an "
                 "example, and the symbol of their count."),
        required("placements", &StackRoundsAttrs::placements, "What it is on a replica."));
  }

  // One more array.
  void add(const ValueType& entry, Placement placement) {
    dtypes.push_back(std::int64_t(entry.dtype));
    ranks.push_back(entry.shape.rank());
    sizes.insert(sizes.end(), entry.shape.begin(), entry.shape.end());
    const bool batched = entry.batched();
    examples.push_back(batched ? entry.batch.axis : -1);
    examples.push_back(batched ? entry.batch.rows_per_example : 0);
    examples.push_back(batched ? kSymbols + entry.batch.symbol : 0);
    placements.push_back(std::int64_t(placement));
  }
};

// The type of one element of an array along its first axis.
inline ValueType entry_type(const ValueType& array) {
  ValueType type{array.dtype, {}, array.batch};
  for (int axis = 1; axis < array.shape.rank(); ++axis) type.shape.push_back(array.shape[axis]);
  if (array.batched()) --type.batch.axis;
  return type;
}
// Rows of each replica's examples stay what they are; what has no examples is not a part of a sum.
inline Placement entry_placement(const ValueType& type, Placement placement) {
  return type.batched() || placement == Placement::kReplicated ? placement : Placement::kVarying;
}

}  // namespace samegrad
