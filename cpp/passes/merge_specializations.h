// Merges the programs of a function for replicas with different counts of examples into one.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

// The trace of a function for the replicas of graph.symbols.replicas.
struct Specialization {
  Graph graph;
  std::string split_at;  // the line at which it turned out to be another one elsewhere
};

// Merges the traces into a program that on each replica equals that replica's trace. Values that
// all traces compute alike are in it once. Collectives, random operations, effects and assignments
// are equal in all traces, in one order; differences between them become branches. The slots of the
// graphs represent the same variables. ValueError or RuntimeError where the traces do not agree.
Graph merge_specializations(const std::vector<Specialization>& traces);

}  // namespace samegrad
