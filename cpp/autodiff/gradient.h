// Reverse-mode differentiation: one walk that builds graph, so derivatives of any order are free.
#pragma once

#include <functional>
#include <span>

#include "ir/builder.h"

namespace samegrad {

// Returns for each source the gradient of Σ targets · seeds, or kNoValue where no recorded node
// connects them. Without seeds all are ones, so that a tensor target is summed. recorded(i) is true
// if the tape saw node i of b.graph(); other nodes stop the backward pass. `sums` are the values to
// which gradients of the sources are added one by one (kNoValue or empty: nothing yet).
Values gradient(Builder& b, std::span<const Value> targets, std::span<const Value> seeds,
                std::span<const Value> sources, const std::function<bool(NodeId)>& recorded,
                std::span<const Value> sums = {});

// ct summed over the axes along which an operand of this type was broadcast.
Value sum_to_type(Builder& b, Value ct, const ValueType& operand_type, Value operand);

}  // namespace samegrad
