// The results of a step that its records contain: new values of variables, and the sums over the
// examples of all replicas that these are computed from.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace samegrad {

// A result of an all-reduce, of a reduction over the examples where there is one replica, or of a
// derivative where there are no examples. It has as many elements as the variable, and elementwise
// operations lead from it to the variable's update.
struct GradientSum {
  SlotId variable;
  Value sum;
};

struct RecordedResults {
  std::vector<GradientSum> sums;
  // All but those of variables whose update is made of another recorded one's, or the other way
  // iteration: the slots of optimizers. As long as sums are the same, they are.
  std::vector<StateWrite> writes;
};

RecordedResults recorded_results(const Graph& graph);

}  // namespace samegrad
