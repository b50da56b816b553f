// Derivatives that the program gives itself.
#pragma once

#include "ir/builder.h"

namespace samegrad {

// The number of the rule's leading operands that are results whose derivative it defines.
std::size_t ruled_results(const Node& rule);
// The operands that the rule gives cotangents of.
const std::vector<std::int64_t>& ruled_operands(const Node& rule);
// Calls the rule with the cotangents of its results (kNoValue: nothing flows, zeros for the rule).
// Returns the cotangents of ruled_operands, in their order; kNoValue: none.
Values apply_rule(Builder& b, const Node& rule, Values cts);

}  // namespace samegrad
