// Rules that every plan must satisfy, whichever planning function has changed it last.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace samegrad {

// The tables of a plan, in the order in which compile() fills them.
enum class PlanStage {
  kSteps,
  kRoots,
  kStorage,
  kPrepacked,
  kInnerLoops,
  kStores,
  kCollectiveDone,
  kLiveRanges
};

// ValueError that names the rule, the values and the steps, if the plan breaks a rule about the
// tables up to this stage.
void verify(const PlanDraft& plan, PlanStage stage);

// The names of all rules of plans, for tests.
std::vector<std::string> plan_rules();

}  // namespace samegrad
