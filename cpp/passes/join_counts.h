// One program out of those that a function is for replicas with different counts of examples.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

// The trace of a function for the replicas of graph.symbols.replicas.
struct CountTrace {
  Graph graph;
  std::string split_at;  // the line at which it turned out to be another one elsewhere
};

// The program that is, on each replica, that of its trace. What all traces compute alike is in it
// once; collectives, random operations, effects and assignments are the same in all of them, in one
// order, and what differs in between is a branch. The slots of the graphs stand for the same
// variables. ValueError or RuntimeError where the traces do not agree.
Graph join_counts(const std::vector<CountTrace>& traces);

}  // namespace samegrad
