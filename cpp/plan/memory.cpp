#include "plan/memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>

#include "base/error.h"
#include "base/shape.h"
#include "plan/buffers.h"
#include "plan/root_uses.h"

namespace samegrad {
namespace {

class LivenessAnalysis {
 public:
  explicit LivenessAnalysis(const PlanDraft& plan)
      : plan_(plan), in_arena_(plan.graph.values.size()), live_ranges_(plan.graph.values.size()) {
    for (Value v : in_arena_.ids()) {
      const Storage storage = plan.storage[v];
      in_arena_[v] = plan.root[v] == v && plan.graph.values[v].source == Source::kNode &&
                     (storage == Storage::kReplica || storage == Storage::kShared);
    }
    // Outputs are arrays of their own, and some results are written into the variables'.
    for (Value output : plan.graph.outputs) in_arena_[root_of(output)] = false;
    for (std::size_t w = 0; w < plan.stores.size(); ++w) {
      if (plan.stores[w] == Aliasing::kInPlace)
        in_arena_[root_of(plan.graph.writes[w].value)] = false;
    }
  }

  PerValue<LiveRange> run() {
    const IndexedVector<StepId, BufferUses> uses = step_uses(plan_);
    for (StepId s : plan_.steps.ids()) {
      for (Value root : uses[s].reads) use(root, s);
      for (Value root : uses[s].writes) use(root, s);
      const SumReads reads = plan_.steps[s].reads_of_sums(plan_);
      if (!reads) continue;
      for (Value root : *reads) use(root, plan_.collective_done[s]);
      for (Value root : uses[s].writes)
        use(root, plan_.collective_done[s]);  // though nobody may read it
    }
    // Values that are copied into variables live until all steps are over.
    for (const StateWrite& write : plan_.graph.writes)
      use(root_of(write.value), plan_.steps.next_id());
    for (StepId s : plan_.steps.ids()) {
      if (plan_.steps[s].is<NodeStep>()) donate(plan_.steps[s].nodes()[0], s);
    }
    return std::move(live_ranges_);
  }

 private:
  Value root_of(Value value) const { return plan_.root[value]; }

  void use(Value root, StepId step) {
    LiveRange& life = live_ranges_[root];
    if (!in_arena_[root]) return;
    if (life.home == kNoValue) life = {step, step, root};
    life.first = std::min(life.first, step);
    life.last = std::max(life.last, step);
  }

  // The results of an elementwise node may be where operands lay whose last step this is.
  void donate(NodeId index, StepId step) {
    const Node& node = plan_.graph.nodes[index];
    if (!node.op->has(kElementwise)) return;
    std::vector<Value> taken;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const Value result = node.outputs[o];
      LiveRange& life = live_ranges_[result];
      if (life.home != result || life.first != step) continue;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const Value donor = root_of(node.inputs[k]);
        LiveRange& from = live_ranges_[donor];
        if (from.home == kNoValue || from.last != step || from.first == step) continue;
        if (std::ranges::count(taken, from.home) || !fits(node, k, o)) continue;
        LiveRange& home = live_ranges_[from.home];
        life.home = from.home;
        home.last = std::max(home.last, life.last);
        taken.push_back(from.home);
        break;
      }
    }
  }

  // True if a result has the elements of the operand and may overwrite it at every read.
  bool fits(const Node& node, std::size_t operand, std::size_t result) const {
    const Value from = node.inputs[operand], to = node.outputs[result];
    const ValueType &a = plan_.graph.type(from), &b = plan_.graph.type(to);
    if (a.shape != b.shape || size_of(a.dtype) != size_of(b.dtype)) return false;
    const Storage storage = plan_.storage[to];
    if (a.batch != b.batch || plan_.storage[root_of(from)] != storage) return false;
    // If replicas run the node by turns, the second would read what the first has written.
    const bool by_turns = std::ranges::any_of(
        node.outputs, [&](Value output) { return plan_.graph.varying(output); });
    if (by_turns && storage == Storage::kShared) return false;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (root_of(node.inputs[k]) != root_of(from)) continue;
      if (plan_.graph.type(node.inputs[k]).shape != b.shape) return false;
      if (node.op->may_overwrite && !node.op->may_overwrite(node, k, result)) return false;
    }
    return true;
  }

  const PlanDraft& plan_;
  PerValue<bool> in_arena_;  // by root
  PerValue<LiveRange> live_ranges_;
};

// Memory that is taken and given back in the order of the steps.
class Arena {
 public:
  std::int64_t take(std::int64_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) return grow(bytes);
    const auto [size, offset] = *best;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }
  void give(std::int64_t offset, std::int64_t bytes) {
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto [at, size] = *std::prev(after);
      if (at + size == offset) {
        remove(at, size);
        offset = at;
        bytes += size;
      }
    }
    add(offset, bytes);
  }
  std::int64_t bytes() const { return end_; }

 private:
  // At the end, beginning with what is free there.
  std::int64_t grow(std::int64_t bytes) {
    std::int64_t offset = end_;
    if (!by_offset_.empty()) {
      const auto [at, size] = *by_offset_.rbegin();
      if (at + size == end_) {
        remove(at, size);
        offset = at;
      }
    }
    end_ = size_sum(offset, bytes);
    return offset;
  }
  void add(std::int64_t offset, std::int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::int64_t offset, std::int64_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::int64_t, std::int64_t> by_offset_;           // free pieces: bytes
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // free pieces: bytes, offset
  std::int64_t end_ = 0;
};

// Best fit, step after step; of what begins together the large first.
Packing pack_in_order(std::span<const Interval> intervals) {
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const Interval &x = intervals[a], &y = intervals[b];
    return x.first != y.first ? x.first < y.first : x.bytes > y.bytes;
  });
  using End = std::pair<std::int32_t, std::size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  Packing packing{std::vector<std::int64_t>(intervals.size(), 0), 0};
  Arena arena;
  for (const std::size_t i : order) {
    const Interval& interval = intervals[i];
    for (; !ends.empty() && ends.top().first < interval.first; ends.pop()) {
      const std::size_t over = ends.top().second;
      arena.give(packing.offsets[over], intervals[over].bytes);
    }
    if (interval.bytes == 0) continue;
    packing.offsets[i] = arena.take(interval.bytes);
    ends.emplace(interval.last, i);
  }
  packing.bytes = arena.bytes();
  return packing;
}

}  // namespace

PerValue<LiveRange> find_live_ranges(const PlanDraft& plan) {
  return LivenessAnalysis(plan).run();
}

Packing pack(std::span<const Interval> intervals) {
  Packing forward = pack_in_order(intervals);
  // A gap in one direction of time is often none in the other.
  std::vector<Interval> turned(intervals.begin(), intervals.end());
  for (Interval& interval : turned) {
    interval = {interval.bytes, -interval.last, -interval.first};
  }
  Packing backward = pack_in_order(turned);
  return backward.bytes < forward.bytes ? std::move(backward) : std::move(forward);
}

void verify(const Packing& packing, std::span<const Interval> intervals) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].bytes > 0) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return packing.offsets[i]; });
  const auto end_of = [&](std::size_t i) { return packing.offsets[i] + intervals[i].bytes; };
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::size_t a = order[k];
    SG_CHECK_VALUE(packing.offsets[a] >= 0 && end_of(a) <= packing.bytes, "plan",
                   "memory holds its intervals: ", end_of(a), " of ", packing.bytes, " bytes.");
    for (std::size_t l = k + 1; l < order.size() && packing.offsets[order[l]] < end_of(a); ++l) {
      const Interval &x = intervals[a], &y = intervals[order[l]];
      SG_CHECK_VALUE(x.last < y.first || y.last < x.first, "plan",
                     "intervals with a common step do not overlap: [", x.first, ", ", x.last,
                     "] and [", y.first, ", ", y.last, "] do, at byte ", packing.offsets[order[l]],
                     ".");
    }
  }
}

}  // namespace samegrad
