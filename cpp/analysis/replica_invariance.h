// Replica invariance: predicts, before a program runs, whether its results are bitwise identical
// for any number of replicas.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

// Why a program of several replicas may have other bits than one device with all the examples: the
// reasons, none if it has the same. `program` is what was
// traced, whose counts of replicas are known, and `compiled` what the passes made of it.
std::vector<std::string> replica_dependences(const Graph& program, const Graph& compiled);

}  // namespace samegrad
