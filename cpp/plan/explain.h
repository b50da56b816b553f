// Plans for people.
#pragma once

#include <string>
#include <vector>

#include "plan/cost.h"

namespace samegrad {

// What a step took in some runs.
struct StepTime {
  double mean = 0, least = 0;  // seconds
};

// What is known of runs with certain counts of examples.
struct RunStatistics {
  std::int64_t arena_bytes = 0;     // at once, and …
  std::int64_t unshared_bytes = 0;  // … if each value had memory of its own
  int threads = 1;
  std::vector<double> predicted;   // seconds, per step
  std::vector<StepTime> measured;  // per step; empty: nothing was run
  int runs = 0;
};

// Bits, machine, steps with what they were chosen by and how long they take. `program` is the graph
// that the plan was compiled from.
std::string explain(const Graph& program, const Plan& plan, const RunStatistics& statistics);

}  // namespace samegrad
