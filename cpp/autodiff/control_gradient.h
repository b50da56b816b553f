// Derivatives of control flow.
#pragma once

#include <vector>

#include "ir/builder.h"

namespace samegrad {

// The cotangents of a control operation's operands, kNoValue where not wanted. A branch becomes
// the branch with its derivative behind it; a loop becomes its iterations backwards, each computed
// again from what the variables were before it. Those iterations keep histories as the loop does,
// so that their derivative is a loop over iterations again. `sums`: the cotangents of operands so
// far, of which those that bodies read from outside are continued, and the others set to kNoValue.
Values control_gradient(const Node& node, const VjpArgs& args, const std::vector<bool>& wanted,
                        Values& sums);

// True if gradients flow through the value: floats, and the residuals that loops stack.
bool has_gradient(const Graph& graph, Value value);
Value add_cotangents(Builder& b, Value x, Value y);

}  // namespace samegrad
