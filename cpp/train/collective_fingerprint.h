// Collective fingerprint check: the facts that must be equal on all processes before they run a
// step together.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "runtime/communicator.h"
#include "train/compiled_function.h"

namespace samegrad {

// Hash of a program and its constants.
std::uint64_t fingerprint_of(const Graph& program);
// Hash of a plan's steps and their order.
std::uint64_t fingerprint_of(const Plan& plan);
// The step, its number, the examples of all replicas, and the values of variables that have not
// been compared before.
std::vector<Fingerprint> facts_of(const CompiledFunction& step, const ExecuteParams& call,
                                  std::uint64_t fingerprint);
// The facts that ranks have compared before a call, to be compared again after a mismatch.
class ComparedFingerprints {
 public:
  explicit ComparedFingerprints(const ExecuteParams& call);
  void take_back() const;

 private:
  const ExecuteParams& call_;
  std::int64_t variables_;
  bool build_;
};

}  // namespace samegrad
