// Runs of compiled steps that an eager trace has recorded as calls. The nodes of a run have no
// arrays until a gradient needs them.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace samegrad {

class RecordedRuns {
 public:
  // Adds the run of a step with this number, and returns its index (CallRange::run).
  std::int32_t add(std::uint64_t number);
  std::uint64_t number(std::int32_t run) const { return numbers_[std::size_t(run)]; }
  // Returns the run that a node is a part of; -1: it belongs to no run.
  static std::int32_t run_of(const Graph& graph, NodeId node);

  // While a call of a run is open, nodes are not executed.
  void open_call(std::int32_t run);
  // Returns true if it was the last call of a run that was open.
  bool close_call();
  bool is_open() const { return deferred_ > 0; }

 private:
  std::vector<std::uint64_t> numbers_;
  std::vector<std::int32_t> open_calls_;  // by run; -1: of none
  int deferred_ = 0;                      // how many of those are not -1
};

}  // namespace samegrad
