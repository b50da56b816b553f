// Looking for NaN and infinities in results.
#pragma once

#include "ir/graph.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// NonFiniteError naming the node and where the first NaN or infinity is.
void check_finite(const Node& node, const View& result, int replica);

}  // namespace samegrad
