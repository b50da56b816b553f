// Replica invariance: predicts, before a program runs, whether its results are bitwise identical
// for any number of replicas.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

// Why a result differs from that of one device.
struct BitsReason {
  std::string line;  // of user code, "train.py:31"; empty: none is known
  std::string text;  // the operation and how it depends on the replicas

  bool operator==(const BitsReason&) const = default;
};

// Why a program of several replicas may have other bits than one device with all the examples;
// empty if it has the same. `program` is what was traced, whose counts of replicas are known, and
// `compiled` what the passes made of it.
std::vector<BitsReason> replica_dependences(const Graph& program, const Graph& compiled);

}  // namespace samegrad
