// Collective fingerprint check: the facts that must be equal on all processes before they run a
// step together.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "runtime/communicator.h"
#include "train/step.h"

namespace samegrad {

// Hash of a program and its constants.
std::uint64_t fingerprint_of(const Graph& program);
// Hash of a plan's steps and their order.
std::uint64_t fingerprint_of(const Plan& plan);
// The step, its number, the examples of all replicas, and the values of variables that have not
// been compared before.
std::vector<Fact> facts_of(const Step& step, const Call& call, std::uint64_t fingerprint);
// The facts that ranks have compared so far, to be compared again after a mismatch.
class Told {
 public:
  Told();
  void take_back(const Call& call) const;

 private:
  std::int64_t variables_;
  bool build_;
};
// Sets the facts about this build, once per process; called by the bindings.
void set_build(std::vector<Fact> facts);

}  // namespace samegrad
