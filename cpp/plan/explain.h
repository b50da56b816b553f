// Printed explanations of plans.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/replica_invariance.h"
#include "plan/cost.h"

namespace samegrad {

// The time of a step in some runs.
struct StepTime {
  double mean = 0, least = 0;  // seconds
  SharedWork shared = {};      // of a run
};

// Measurements and predictions for runs with certain counts of examples.
struct RunStatistics {
  std::int64_t arena_bytes = 0;     // at once, and …
  std::int64_t unshared_bytes = 0;  // … if each value had memory of its own
  int threads = 1;
  std::vector<double> predicted;   // seconds, per step
  std::vector<StepTime> measured;  // per step; empty: nothing was run
  int runs = 0;
};

// An operation of a step.
struct ExplainedOperation {
  Value result;
  std::string name;
  std::string type = {};   // dtype, shape and placement of the result
  std::string line = {};   // of user code, "train.py:31", or empty
  std::string names = {};  // of the operations that were fused into it, or another name of it
  bool fused = false;
  bool deferred = false;  // follows the loop over the examples that it is a part of
  bool parallel = false;  // shared by all threads
};

// A step of the plan: operations that run together.
struct ExplainedStep {
  std::string kind, title;
  bool only_names_rows = false;  // of the operations, which it does not run
  std::vector<ExplainedOperation> operations = {};
  std::vector<std::string> notes = {};  // what it was chosen by
  std::int64_t tile_examples = 0;       // of a loop: how many go through it at a time, and …
  std::int64_t example_bytes = 0;       // … what each of them has between the operations
  double predicted = 0;                 // seconds
  std::optional<StepTime> measured = {};
};

// Bits, machine, steps with what they were chosen by and how long they take.
struct Explanation {
  int replicas = 1;
  std::size_t operations = 0;
  std::vector<BitsReason> reasons = {};  // empty: bitwise identical to one replica
  std::string machine = {};
  RunStatistics statistics = {};
  std::vector<ExplainedStep> steps = {};

  double predicted() const;
  StepTime measured() const;  // of all steps
};

// `program` is the graph that the plan was compiled from.
Explanation explain(const Graph& program, const Plan& plan, RunStatistics statistics);
std::string to_string(const Explanation& explanation);

}  // namespace samegrad
