// Predicted time of steps: a roofline.
#include <algorithm>

#include "base/machine.h"
#include "base/thresholds.h"
#include "ir/op_def.h"
#include "plan/cost.h"

namespace samegrad {
namespace {

constexpr double kCallSeconds = 0.1e-6;  // of a kernel, whatever it does
constexpr double kStepSeconds = 0.5e-6;  // of a step
constexpr double kForkSeconds = 5e-6;    // of handing pieces to threads and waiting for them
constexpr double kDoubleWork = 1e-30;    // no division by zero where nothing is computed

struct Load {
  double flops = 0, double_flops = 0;
  double cache_bytes = 0;   // moved by calls, wherever the bytes are
  double memory_bytes = 0;  // of the buffers of the step, each once
  double calls = 0;
};

class Predictor {
 public:
  Predictor(const PlanDraft& plan, const Counts& counts, const Rates& rates)
      : plan_(plan), counts_(counts), rates_(rates) {}

  double seconds(const PlanStep& step) const {
    if (step.is<ControlStep>()) return kStepSeconds;
    Load load;
    if (const auto* loop = step.get_if<LoopStep>()) {
      add_loop(*loop, load);
    } else {
      for (NodeId n : step.nodes()) add_node(plan_.graph.nodes[n], load);
    }
    const BufferUses uses = step.uses(plan_);
    for (Value root : uses.reads) load.memory_bytes += bytes_of(root);
    for (Value root : uses.writes) load.memory_bytes += bytes_of(root);
    return seconds(load);
  }

 private:
  double seconds(const Load& load) const {
    const double work = load.flops + load.double_flops;
    const auto least = double(thresholds().parallel_loop_work);
    const bool parallel = rates_.threads > 1 && std::max(work, load.memory_bytes) > least;
    const double part = parallel ? 1 : 1.0 / std::max(rates_.threads, 1);
    const double computing = load.flops / (rates_.flops + kDoubleWork) +
                             load.double_flops / (rates_.double_flops + kDoubleWork);
    const double in_cache = load.cache_bytes / rates_.cache_bytes;
    const bool stays = load.memory_bytes <= double(machine().l2) * std::max(rates_.threads, 1);
    const double moving = load.memory_bytes / (stays ? rates_.cache_bytes : rates_.memory_bytes);
    const double calls = load.calls * kCallSeconds / std::max(rates_.threads, 1);
    return std::max({computing, in_cache, moving, calls}) / part + kStepSeconds +
           (parallel ? kForkSeconds : 0);
  }

  void add(const Node& node, const Cost& cost, Load& load) const {
    const bool doubles = plan_.graph.type(node.outputs[0]).dtype == DType::kFloat64;
    (doubles ? load.double_flops : load.flops) += cost.flops;
    load.cache_bytes += cost.bytes;
  }

  void add_node(const Node& node, Load& load) const {
    if (node.op->has(kAliases)) return;
    const bool varies = std::ranges::any_of(
        node.outputs, [&](Value output) { return plan_.graph.varying(output); });
    const bool reads_all =
        std::ranges::any_of(node.inputs, [&](Value input) { return plan_.graph.varying(input); });
    for (std::size_t r = 0; r < (varies || reads_all ? counts_.size() : 1); ++r) {
      add(node, cost_of(plan_.graph, node, counts_[r]), load);
      ++load.calls;
    }
  }

  void add_loop(const LoopStep& loop, Load& load) const {
    for (std::size_t r = 0; r < (loop.varying ? counts_.size() : 1); ++r) {
      const std::int64_t examples = counts_[r][std::size_t(loop.symbol)];
      const auto tiles = double((examples + loop.tile_examples - 1) / loop.tile_examples);
      for (NodeId n : loop.nodes) {
        const Node& node = plan_.graph.nodes[n];
        Cost cost = cost_of(plan_.graph, node, counts_[r]);
        // Operands without examples (weights, and sums over the examples) are moved once per tile.
        cost.bytes += (tiles - 1) * unbatched_bytes(node);
        add(node, cost, load);
        load.calls += node.op->has(kAliases) ? 0 : tiles;
      }
    }
  }

  double unbatched_bytes(const Node& node) const {
    double bytes = 0;
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (Value value : *values) {
        const ValueType& type = plan_.graph.type(value);
        if (!type.batched()) bytes += double(example_bytes(type));
      }
    }
    return bytes;
  }

  double bytes_of(Value root) const {
    if (plan_.storage[root] == Storage::kTile) return 0;
    const ValueType& type = plan_.graph.type(root);
    double bytes = 0;
    for (std::size_t r = 0; r < (plan_.graph.varying(root) ? counts_.size() : 1); ++r) {
      bytes += double(shape_or_empty(type, counts_[r]).size()) * double(size_of(type.dtype));
    }
    return bytes;
  }

  const PlanDraft& plan_;
  const Counts& counts_;
  const Rates& rates_;
};

}  // namespace

double predict(const PlanDraft& plan, const PlanStep& step, const Counts& counts,
               const Rates& rates) {
  return Predictor(plan, counts, rates).seconds(step);
}

}  // namespace samegrad
