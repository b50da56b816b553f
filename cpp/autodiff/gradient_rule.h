// Derivatives that the program gives itself.
#pragma once

#include "ir/builder.h"

namespace samegrad {

// The number of the rule's leading operands that are results whose derivative it defines.
std::size_t ruled_results(const Node& rule);
// The operands that the rule gives cotangents of.
const std::vector<std::int64_t>& ruled_operands(const Node& rule);
// Those cotangents, given one for each of the results (kNoValue: nothing flows, zeros for the
// rule), in the order of ruled_operands; kNoValue: none.
Values apply_rule(Builder& b, const Node& rule, Values cts);

}  // namespace samegrad
