#include <algorithm>

#include "base/thresholds.h"
#include "plan/cost.h"
#include "plan/schedule.h"

namespace samegrad {
namespace {

struct NodeRange {
  std::int32_t first = -1, last = -1;  // positions in the loop
};

PerValue<NodeRange> lifetimes(const PlanDraft& plan, const LoopStep& loop) {
  PerValue<NodeRange> ranges(plan.graph.values.size());
  for (std::size_t p = 0; p < loop.nodes.size(); ++p) {
    const Node& node = plan.graph.nodes[loop.nodes[p]];
    for (Value output : node.outputs) {
      NodeRange& range = ranges[plan.root[output]];
      if (range.first < 0) range.first = std::int32_t(p);
      range.last = std::max(range.last, std::int32_t(p));
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.op->reads(k)) continue;
      NodeRange& range = ranges[plan.root[node.inputs[k]]];
      range.last = std::max(range.last, std::int32_t(p));
    }
  }
  return ranges;
}

std::vector<LoopStep::Inner> merged(std::vector<LoopStep::Inner> stretches) {
  std::sort(stretches.begin(), stretches.end(),
            [](const LoopStep::Inner& a, const LoopStep::Inner& b) { return a.begin < b.begin; });
  std::vector<LoopStep::Inner> result;
  for (const LoopStep::Inner& stretch : stretches) {
    if (!result.empty() && stretch.begin < result.back().end) {
      result.back().end = std::max(result.back().end, stretch.end);
    } else {
      result.push_back(stretch);
    }
  }
  return result;
}

std::int64_t largest_per_call(const PlanDraft& plan, const LoopStep& loop, const NodeRange& range) {
  std::int64_t largest = 0;
  for (std::int32_t p = range.first; p <= range.last; ++p) {
    const Node& node = plan.graph.nodes[loop.nodes[std::size_t(p)]];
    largest = std::max(largest, bytes_per_call(plan.graph, node));
  }
  return largest;
}

void form(PlanDraft& plan, LoopStep& loop) {
  const PerValue<NodeRange> ranges = lifetimes(plan, loop);
  std::vector<LoopStep::Inner> stretches;
  for (Value v : ranges.ids()) {
    const bool in_tile = plan.storage[v] == Storage::kTile && plan.root[v] == v;
    if (!in_tile || ranges[v].first < 0) continue;
    // A big result of one example leaves the cache before it is read if a tile of examples is made
    // of it first; a long stretch would take everything with it.
    // So would weights that are larger than it and have to pass by for each example.
    const std::int64_t bytes = example_bytes(plan.graph.values[v].type);
    const bool big = bytes > thresholds().inner_loop_bytes;
    if (big && ranges[v].last - ranges[v].first <= thresholds().inner_loop_stretch &&
        largest_per_call(plan, loop, ranges[v]) <= bytes) {
      stretches.push_back({ranges[v].first, ranges[v].last + 1});
    }
  }
  loop.inner = merged(std::move(stretches));
  for (Value v : ranges.ids()) {
    if (plan.storage[v] != Storage::kTile || ranges[v].first < 0) continue;
    for (const LoopStep::Inner& inner : loop.inner) {
      if (ranges[v].first >= inner.begin && ranges[v].last < inner.end) plan.inner_value[v] = true;
    }
  }
}

}  // namespace

void form_inner_loops(PlanDraft& plan, const PlanOptions& options) {
  plan.inner_value.assign(plan.graph.values.size(), false);
  if (options.inner_loops) {
    for (PlanStep& step : plan.steps) {
      if (auto* loop = step.get_if<LoopStep>()) form(plan, *loop);
    }
  }
  for (Value v : plan.root.ids()) {
    if (plan.inner_value[plan.root[v]]) plan.inner_value[v] = true;
  }
}

}  // namespace samegrad
