// Liveness and buffer assignment: the steps that need the memory of a value, and its offset in the
// arena.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace samegrad {

// Computes the live range of every value in a run's arena, from the buffers that the steps declare;
// other values have empty ones. A whole elementwise operation may give its result the memory of an
// operand without later readers.
PerValue<LiveRange> find_live_ranges(const PlanDraft& plan);

// Memory from the first to the last of some steps.
struct Interval {
  std::int64_t bytes = 0;
  std::int32_t first = 0, last = 0;
};

// Offsets such that no two intervals with a common step overlap; O(n log n).
struct Packing {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};
Packing pack(std::span<const Interval> intervals);
// ValueError if two intervals with a common step overlap, or one leaves the memory.
void verify(const Packing& packing, std::span<const Interval> intervals);

}  // namespace samegrad
