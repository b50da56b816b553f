// Derivatives of control flow.
#pragma once

#include <vector>

#include "ir/builder.h"

namespace samegrad {

// The cotangents of a cond's or while_loop's operands, kNoValue where not wanted. A branch becomes
// the branch with its derivative behind it; a loop becomes its rounds backwards, each computed
// again from what the variables were before it.
Values control_gradient(const Node& node, const VjpArgs& args, const std::vector<bool>& wanted);

}  // namespace samegrad
