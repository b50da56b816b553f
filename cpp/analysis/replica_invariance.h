// Replica invariance: predicts, before a program runs, whether its results are bitwise identical
// for any number of replicas.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

// The reason that a result differs from that of a single device.
struct BitsReason {
  std::string line;  // of user code, "train.py:31"; empty: none is known
  std::string text;  // the operation and how it depends on the replicas

  bool operator==(const BitsReason&) const = default;
};

// Returns the reasons that a program on several replicas may differ bitwise from one device with
// all examples. The result is empty if the program is bitwise identical. `program` is the traced
// graph, whose counts of replicas are known. `compiled` is that graph after the passes.
std::vector<BitsReason> replica_dependences(const Graph& program, const Graph& compiled);

}  // namespace samegrad
