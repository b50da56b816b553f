// Records of steps, for callers that requested them.
#pragma once

#include <pybind11/pybind11.h>

#include "train/step_hashes.h"

namespace samegrad {

// True while steps are recorded and this one is to be: it has variables, and no recorded step runs
// it.
bool is_recorded(const CompiledFunction& step);
// Runs the step with its record, and gives that to the observer. The caller has Python's lock.
CompiledFunction::RunResult run_observed(CompiledFunction& step,
                                         const std::vector<PerReplica<Array>>& arguments,
                                         bool check_finite, PrintBuffer* messages);

}  // namespace samegrad
