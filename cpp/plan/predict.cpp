// Predicted time of steps. Within caches, computing and moving bytes overlap; waiting for memory
// does not, as in the execution-cache-memory model (Stengel et al., 2015).
#include <algorithm>
#include <map>
#include <numeric>
#include <variant>

#include "base/machine.h"
#include "base/thresholds.h"
#include "ir/op_def.h"
#include "ops/attributes.h"
#include "ops/fused.h"
#include "plan/cost.h"

namespace samegrad {
namespace {

constexpr double kCallSeconds = 0.2e-6;  // of a kernel, whatever it does
constexpr double kStepSeconds = 0.5e-6;  // of a step
constexpr double kLines = 5;  // of code and of the plan that a step, and each node of it, waits for
constexpr double kRowSeconds = 12e-9;  // of a row that is named, and sorted among the others

struct Load {
  double work = 0;     // in operations
  double seconds = 0;  // of all threads: for each call, of computing or of moving within caches
  double memory_bytes = 0;  // of the buffers of the step, each once
  double calls = 0;
  double nodes = 0;  // that are called at all
};

class Predictor {
 public:
  Predictor(const PlanDraft& plan, const Counts& counts, const Rates& rates)
      : plan_(plan), counts_(counts), rates_(rates), moved_(bytes_of_steps()), cold_(is_cold()) {}

  std::vector<double> seconds() const {
    std::vector<double> predicted;
    for (StepId s : plan_.steps.ids()) {
      predicted.push_back(
          std::visit([&](const auto& kind) { return seconds(kind, moved_[s.index()]); },
                     plan_.steps[s].kind()));
    }
    return predicted;
  }

 private:
  double seconds(const NodeStep& step, double bytes) const { return of_nodes(step, bytes); }
  double seconds(const SideBySideStep& step, double bytes) const { return of_nodes(step, bytes); }
  double seconds(const GroupedGemmStep& step, double bytes) const { return of_nodes(step, bytes); }
  double seconds(const AllReduceStep& step, double bytes) const { return of_nodes(step, bytes); }
  double seconds(const BlockUpdateStep& step, double bytes) const { return of_nodes(step, bytes); }
  double seconds(const SparseReduceStep& step, double bytes) const { return of_nodes(step, bytes); }
  double seconds(const SparseUpdateStep& step, double bytes) const { return of_nodes(step, bytes); }

  double seconds(const LoopStep& loop, double bytes) const {
    Load load{.memory_bytes = bytes};
    add_loop(loop, load);
    return seconds_of_load(load);
  }

  // Control flow copies its operands and results on one thread.
  double seconds(const ControlStep&, double bytes) const {
    const double rate = cold_ ? rates_.memory_bytes : rates_.cache_bytes;
    return step_seconds() + 2 * bytes * std::max(rates_.threads, 1) / rate;
  }

  // One thread names the rows. Their sums are stored here where reductions read them.
  double seconds(const SparseRowsStep& step, double) const {
    Load sums;
    double rows = 0;
    for (NodeId n : step.nodes) {
      const Node& tree = plan_.graph.nodes[n];
      add_node(tree, sums);
      for (std::size_t r = 0; r < copies_of(tree); ++r) {
        rows += double(named_rows(plan_.graph, tree, counts_[r]));
      }
    }
    const bool stores = !plan_.sparse_updates[step.update].reductions.empty();
    return rows * kRowSeconds + (stores ? seconds_of_load(sums) : step_seconds());
  }

  double of_nodes(const StepBase& step, double bytes) const {
    Load load{.memory_bytes = bytes};
    for (NodeId n : step.nodes) add_node(plan_.graph.nodes[n], load);
    return seconds_of_load(load);
  }

  template <class Step>
  double bytes_moved(const Step& step) const {
    const BufferUses uses = step.uses(plan_);
    const std::map<Value, double> read = bytes_read(step);
    double bytes = 0;
    for (Value root : uses.reads) {
      const auto at = read.find(root);
      bytes += at == read.end() ? bytes_of(root) : std::min(bytes_of(root), at->second);
    }
    for (Value root : uses.writes) bytes += bytes_of(root);
    return bytes;
  }

  std::vector<double> bytes_of_steps() const {
    std::vector<double> bytes;
    for (const PlanStep& step : plan_.steps) {
      bytes.push_back(std::visit([&](const auto& kind) { return bytes_moved(kind); }, step.kind()));
    }
    return bytes;
  }

  // True if a run passes over more bytes than the caches keep until the next run.
  bool is_cold() const {
    const double bytes = std::accumulate(moved_.begin(), moved_.end(), 0.0);
    return bytes > double(machine().l2) * std::max(rates_.threads, 1);
  }

  double step_seconds() const { return cold_ ? kLines * rates_.line_seconds : kStepSeconds; }

  double seconds_of_load(const Load& load) const {
    const int threads = std::max(rates_.threads, 1);
    const auto least = double(thresholds().parallel_loop_work);
    const bool parallel = threads > 1 && std::max(load.work, load.memory_bytes) > least;
    const double waiting = cold_ ? load.memory_bytes / rates_.memory_bytes : 0;
    const double shared = load.seconds + load.calls * kCallSeconds / threads + waiting;
    const double alone = shared * threads;  // other threads that come late find nothing to do
    return (parallel ? std::min(shared + rates_.fork_seconds, alone) : alone) + step_seconds() +
           (cold_ ? load.nodes * kLines * rates_.line_seconds : 0);
  }

  // Adds calls of a node that cost so much each.
  void add(const Node& node, const Cost& cost, double calls, Load& load) const {
    const bool doubles = plan_.graph.type(node.outputs[0]).dtype == DType::kFloat64;
    const double rate =
        rate_of(*node.op, node.attrs) * (doubles ? rates_.double_flops : rates_.flops);
    // A sum over examples adds a leaf to the others after each four.
    const double adds = node.locality == Locality::kBatchReduction ? 1 + 1.0 / kLeafExamples : 1;
    load.work += calls * cost.flops;
    load.seconds += calls * std::max(adds * cost.flops / rate, cost.bytes() / rates_.cache_bytes);
    load.calls += node.op->has(kAliases) ? 0 : calls;
    load.nodes += node.op->has(kAliases) ? 0 : 1;
  }

  // The bytes that nodes of the step read of each root.
  std::map<Value, double> bytes_read(const StepBase& step) const {
    std::map<Value, double> read;
    for (NodeId n : step.nodes) {
      const Node& node = plan_.graph.nodes[n];
      for (const auto& counts : counts_) {
        const Cost cost = cost_of(plan_.graph, node, counts);
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
          read[plan_.root[node.inputs[k]]] += cost.read[k];
        }
      }
    }
    return read;
  }

  // The number of replicas that run the node: one where all would do the same.
  std::size_t copies_of(const Node& node) const {
    const auto varies = [&](Value value) { return plan_.graph.varying(value); };
    const bool of_replicas =
        std::ranges::any_of(node.outputs, varies) || std::ranges::any_of(node.inputs, varies);
    return of_replicas ? counts_.size() : 1;
  }

  void add_node(const Node& node, Load& load) const {
    for (std::size_t r = 0; r < copies_of(node); ++r) {
      add(node, cost_of(plan_.graph, node, counts_[r]), 1, load);
    }
  }

  // Each tile is a call of every node: weights and sums over the examples are moved once per tile.
  void add_loop(const LoopStep& loop, Load& load) const {
    const auto symbol = std::size_t(loop.symbol);
    for (std::size_t r = 0; r < (loop.varying ? counts_.size() : 1); ++r) {
      const std::int64_t examples = counts_[r][symbol];
      const std::int64_t whole = examples / loop.tile_examples;
      std::vector<std::int64_t> of_tile = counts_[r], of_last = counts_[r];
      of_tile[symbol] = loop.tile_examples;
      of_last[symbol] = examples % loop.tile_examples;
      for (NodeId n : loop.nodes) {
        const Node& node = plan_.graph.nodes[n];
        add(node, cost_of(plan_.graph, node, of_tile), double(whole), load);
        if (of_last[symbol]) add(node, cost_of(plan_.graph, node, of_last), 1, load);
      }
    }
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
  const std::vector<double> moved_;  // bytes of the buffers of each step
  const bool cold_;
};

std::int64_t rows_of(const PlanDraft& plan, Value value, const Counts& counts) {
  std::int64_t most = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    most = std::max(most, shape_or_empty(plan.graph.type(value), counts[r])[0]);
  }
  return most;
}

}  // namespace

double predict_iterations(const PlanDraft& plan, NodeId n, const Counts& counts) {
  const Node* node = &plan.graph.nodes[n];
  while (node && node->attrs.get_if<ReplayAttrs>()) node = plan.graph.producer(node->inputs[0]);
  if (!node) return 1;
  if (is_op<"unstack_rounds">(*node)) return double(rows_of(plan, node->inputs[0], counts));
  const auto* loop = node->attrs.get_if<WhileAttrs>();
  return loop && loop->maximum > 0 ? double(loop->maximum) : 1;
}

std::vector<double> predict(const PlanDraft& plan, const Counts& counts, const Rates& rates) {
  return Predictor(plan, counts, rates).seconds();
}

}  // namespace samegrad
