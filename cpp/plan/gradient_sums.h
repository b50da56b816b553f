// The sums over the examples of all replicas that updates of variables read.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace samegrad {

struct GradientSum {
  SlotId variable;
  Value sum;  // result of the all-reduce, or of the reduction where there is one replica
};

// Sums with as many elements as their variable, which elementwise operations lead from to its
// update. A sum that reaches several variables belongs to the first one that the program reads:
// weights come before the slots of their optimizer.
std::vector<GradientSum> gradient_sums(const Graph& graph);

}  // namespace samegrad
