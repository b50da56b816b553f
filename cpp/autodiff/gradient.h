// Reverse-mode differentiation: one walk that builds graph, so derivatives of any order are free.
#pragma once

#include <functional>
#include <span>

#include "ir/builder.h"

namespace samegrad {

// For each source the gradient of Σ targets · seeds (no seeds at all stand for ones, so a tensor
// target is summed), or kNoValue where no recorded node connects them.
// recorded(i): the tape saw node i of b.graph(); others stop the walk. `sums`: what gradients of
// the sources are added to one by one (kNoValue: nothing yet); none at all: nothing for any.
Values gradient(Builder& b, std::span<const Value> targets, std::span<const Value> seeds,
                std::span<const Value> sources, const std::function<bool(NodeId)>& recorded,
                std::span<const Value> sums = {});

// ct summed over the axes along which an operand of this type was broadcast.
Value sum_to_type(Builder& b, Value ct, const ValueType& operand_type, Value operand);

}  // namespace samegrad
