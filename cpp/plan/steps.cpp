#include "plan/steps.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "ir/op_def.h"
#include "plan/cost.h"
#include "plan/plan.h"

namespace samegrad {
namespace {

bool is_exchange(const PlanDraft& plan, NodeId node) {
  return bool(plan.graph.nodes[node].op->exchange);
}

// Sorted, each once.
void make_set(std::vector<Value>& values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

void add_roots(const PlanDraft& plan, const Node& node, BufferUses& uses) {
  if (node.op->has(kAliases)) return;  // shows bytes, touches none
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (node.op->reads(k)) uses.reads.push_back(plan.root[node.inputs[k]]);
  }
  for (Value output : node.outputs) uses.writes.push_back(plan.root[output]);
}

// Values that pass between the nodes of a step block by block have no buffer.
void drop_unused(const PlanDraft& plan, BufferUses& uses) {
  const auto unused = [&](Value root) { return plan.storage[root] == Storage::kUnused; };
  std::erase_if(uses.reads, unused);
  std::erase_if(uses.writes, unused);
  make_set(uses.reads);
  make_set(uses.writes);
}

std::vector<NodeId> nodes_of(const std::vector<ExampleSum>& sums, NodeId update) {
  std::vector<NodeId> nodes;
  for (const ExampleSum& sum : sums) {
    if (sum.tree.exists()) nodes.push_back(sum.tree);
    if (sum.all_reduce.exists()) nodes.push_back(sum.all_reduce);
  }
  if (update.exists()) nodes.push_back(update);
  return nodes;
}

}  // namespace

BufferUses StepBase::uses_of_nodes(const PlanDraft& plan) const {
  BufferUses uses;
  for (NodeId n : nodes) add_roots(plan, plan.graph.nodes[n], uses);
  for (const Prepacked& prepacked : prepack) uses.reads.push_back(plan.root[prepacked.operand]);
  drop_unused(plan, uses);
  return uses;
}

bool StepBase::nodes_can_fail(const PlanDraft& plan) const {
  return std::ranges::any_of(nodes, [&](NodeId n) {
    const Node& node = plan.graph.nodes[n];
    if (node.op->has(kAliases)) return false;
    return may_raise(plan.graph, node) ||
           !(node.op->has(kElementwise) || has_bounded_scratch(plan.graph, node));
  });
}

std::string LoopStep::title(const PlanDraft&) const {
  std::ostringstream out;
  const char* whose = joint ? " of all replicas" : varying ? " of each replica" : "";
  out << "loop over the examples" << whose << ", " << trees.size() << " tree reductions";
  for (const Inner& stretch : inner) {
    out << ", nodes " << stretch.begin << "-" << stretch.end - 1 << " one example at a time";
  }
  return out.str();
}

bool AllReduceStep::sends_messages(const PlanDraft& plan) const {
  return std::ranges::any_of(nodes, [&](NodeId n) { return is_exchange(plan, n); });
}

SumReads AllReduceStep::reads_of_sums(const PlanDraft& plan) const {
  if (std::ranges::all_of(nodes, [&](NodeId n) { return is_exchange(plan, n); })) {
    return std::nullopt;
  }
  return std::vector<Value>();
}

BlockUpdateStep::BlockUpdateStep(std::vector<ExampleSum> of, NodeId by)
    : StepBase{nodes_of(of, by)}, sums(std::move(of)), update(by) {}

SumReads BlockUpdateStep::reads_of_sums(const PlanDraft& plan) const {
  if (!has_replicas()) return std::nullopt;
  std::vector<Value> roots;
  if (!update.exists()) return roots;
  for (Value input : plan.graph.nodes[update].inputs) {
    const Value root = plan.root[input];
    if (plan.storage[root] != Storage::kUnused) roots.push_back(root);
  }
  return roots;
}

// The step makes the values of its rows for itself, also those that an update leaves in memory.
BufferUses SparseReduceStep::uses(const PlanDraft& plan) const {
  BufferUses uses;
  for (NodeId n : nodes) add_roots(plan, plan.graph.nodes[n], uses);
  std::erase_if(uses.reads, [&](Value root) {
    return std::ranges::find(uses.writes, root) != uses.writes.end();
  });
  uses.writes = {plan.root[plan.graph.nodes[nodes.back()].outputs[0]]};
  drop_unused(plan, uses);
  return uses;
}

std::string SparseUpdateStep::title(const PlanDraft& plan) const {
  return plan.sparse_updates[update].leaves_rows_alone
             ? "sparse, row by row"
             : "all rows, some at a time, of a sparse gradient";
}

const StepBase& PlanStep::base() const {
  return std::visit([](const StepBase& step) -> const StepBase& { return step; },  // NOLINT
                    kind_);
}

StepBase& PlanStep::base() {
  return std::visit([](StepBase& step) -> StepBase& { return step; }, kind_);
}

const char* PlanStep::name() const {
  return std::visit([](const auto& step) { return step.kName; }, kind_);
}

StoreRule PlanStep::stores() const {
  return std::visit([](const auto& step) { return step.kStores; }, kind_);
}

bool PlanStep::binds_nodes() const {
  return std::visit([](const auto& step) { return step.kBindsNodes; }, kind_);
}

BufferUses PlanStep::uses(const PlanDraft& plan) const {
  return std::visit([&](const auto& step) { return step.uses(plan); }, kind_);
}

bool PlanStep::can_fail(const PlanDraft& plan) const {
  return std::visit([&](const auto& step) { return step.can_fail(plan); }, kind_);
}

bool PlanStep::sends_messages(const PlanDraft& plan) const {
  return std::visit([&](const auto& step) { return step.sends_messages(plan); }, kind_);
}

SumReads PlanStep::reads_of_sums(const PlanDraft& plan) const {
  return std::visit([&](const auto& step) { return step.reads_of_sums(plan); }, kind_);
}

std::string PlanStep::title(const PlanDraft& plan) const {
  return std::visit([&](const auto& step) { return step.title(plan); }, kind_);
}

SparseUpdateId PlanStep::sparse_update() const {
  return std::visit(
      [](const auto& step) {
        if constexpr (std::is_base_of_v<SparseStep, std::decay_t<decltype(step)>>) {
          return step.update;
        } else {
          return SparseUpdateId();
        }
      },
      kind_);
}

}  // namespace samegrad
