// Checks results for NaN and infinities.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// NonFiniteError naming the node and where the first NaN or infinity is.
void check_finite(const Node& node, const View& result, int replica);
// Checks a result of so many examples, each on the replica of its number.
void check_finite(const Node& node, const View& result, std::int64_t examples,
                  const std::function<int(std::int64_t)>& replica_of);

}  // namespace samegrad
