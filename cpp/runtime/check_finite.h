// Looking for NaN and infinities in results.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// Where the nodes of a program were written, by Node::location.
using Locations = std::vector<std::string>;

// NonFiniteError naming the node and where the first NaN or infinity is.
void check_finite(const Locations* locations, const Node& node, const View& result, int replica);

}  // namespace samegrad
