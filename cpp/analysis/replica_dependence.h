// Replica dependence check: finds statistics of one replica's examples that reach given values.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

struct ReplicaDependence {
  enum class Statistic : std::uint8_t { kCount, kMean, kOther } statistic;
  std::string op;        // the operation that made it, "reduce_max"
  std::string location;  // its line, "train.py:31", empty where it is not known
  // A mean that is averaged over the replicas at last: right for equal per-replica batches.
  bool averaged = true;
};

// The statistics that the sinks depend on, in the order of the program, each once. Partial sums,
// numbers of examples, random numbers, the replica's id and values given per replica are the
// program's own choice. So is a statistic that all_gather collects: one entry per replica. Means
// whose gradients are summed are left to check_loss_normalization().
std::vector<ReplicaDependence> replica_dependences_of(const Graph& graph,
                                                      const std::vector<Value>& sinks);

}  // namespace samegrad
