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
// Of what a plan does, and in which order.
std::uint64_t fingerprint_of(const Plan& plan);
// The step, its number, the examples of all replicas, and the values of variables that have not
// been compared before.
std::vector<Fact> facts_of(const Step& step, const Call& call, std::uint64_t fingerprint);
// What ranks have told each other so far, to be told again where they did not agree.
class Told {
 public:
  Told();
  void take_back(const Call& call) const;

 private:
  std::int64_t variables_;
  bool build_;
};
// Of the process, once: set by the bindings.
void set_build(std::vector<Fact> facts);

}  // namespace samegrad
