#include <algorithm>

#include "ops/control.h"
#include "ops/random_attributes.h"
#include "plan/buffers.h"
#include "plan/cost.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/schedule.h"
#include "plan/verify.h"

namespace samegrad {
namespace {

bool bytes_are_shared(const Node& node) {
  return node.op->has(kAliases);
}

void set_roots(PlanDraft& plan) {
  plan.root.resize(plan.graph.values.size());
  for (Value v : plan.root.ids()) plan.root[v] = v;
  IndexedVector<SlotId, Value> first_read(plan.graph.variables.size(), kNoValue);
  for (Value v : plan.root.ids()) {
    const ValueInfo& info = plan.graph.values[v];
    if (info.source != Source::kVariable) continue;
    Value& first = first_read[info.slot()];
    first = first == kNoValue ? v : first;
    plan.root[v] = first;
  }
  for (const Node& node : plan.graph.nodes) {
    if (!bytes_are_shared(node)) continue;
    plan.root[node.outputs[0]] = plan.root[node.inputs[0]];
  }
  plan.has_rows.assign(plan.graph.values.size(), false);
  for (Value v : plan.root.ids()) {
    if (plan.graph.type(v).batched()) plan.has_rows[plan.root[v]] = true;
  }
}

// The loop that runs each node, or none.
PerNode<StepId> loops_of_nodes(const PlanDraft& plan) {
  PerNode<StepId> owner(plan.graph.nodes.size());
  for (StepId s : plan.steps.ids()) {
    if (!plan.steps[s].is<LoopStep>()) continue;
    for (NodeId node : plan.steps[s].nodes()) owner[node] = s;
  }
  return owner;
}

// The values that a step of reductions and an update produces and consumes block by block.
PerValue<bool> values_inside_updates(const PlanDraft& plan) {
  PerValue<bool> inside(plan.graph.values.size(), false);
  for (const PlanStep& step : plan.steps) {
    const auto* update = step.get_if<BlockUpdateStep>();
    if (!update) continue;
    for (const ExampleSum& sum : update->sums) {
      if (sum.tree.exists()) {
        inside[plan.graph.nodes[sum.tree].outputs[0]] = true;
      }
      inside[sum.result] = update->update.exists();
    }
  }
  for (const SparseUpdate& update : plan.sparse_updates) {
    for (const ExampleSum& sum : update.sums) {
      inside[plan.graph.nodes[sum.tree].outputs[0]] = true;
      inside[sum.result] = true;
    }
    const auto add = [&](const SparsePass& pass) {
      for (NodeId n : pass.nodes) {
        for (Value output : plan.graph.nodes[n].outputs) inside[output] = true;
      }
    };
    add(update.update);
    for (const SparseUpdate::Reduction& reduction : update.reductions) add(reduction.pass);
    for (const SparseUpdate::UpdatedVariable& result : update.results) inside[result.value] = false;
  }
  return inside;
}

void set_storage(PlanDraft& plan) {
  const Graph& graph = plan.graph;
  const PerNode<StepId> owner = loops_of_nodes(plan);
  const PerValue<bool> inside = values_inside_updates(plan);
  plan.storage.assign(graph.values.size(), Storage::kExternal);
  for (NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    const bool tile = owner[n].exists() && node.locality == Locality::kPerExample;
    for (Value output : node.outputs) {
      plan.storage[output] = inside[output]          ? Storage::kUnused
                             : tile                  ? Storage::kTile
                             : graph.varying(output) ? Storage::kReplica
                                                     : Storage::kShared;
    }
  }
  // A value that is read outside its loop must exist as a whole.
  const auto keep_whole = [&](Value value) {
    const Value root = plan.root[value];
    if (plan.storage[root] != Storage::kTile) return;
    plan.storage[root] = graph.varying(root) ? Storage::kReplica : Storage::kShared;
  };
  for (NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.op->reads(k)) continue;
      const Node* producer = graph.producer(plan.root[node.inputs[k]]);
      if (!producer) continue;
      if (owner[graph.nodes.id_of(*producer)] != owner[n]) keep_whole(node.inputs[k]);
    }
  }
  for (Value output : graph.outputs) keep_whole(output);
  for (const StateWrite& write : graph.writes) keep_whole(write.value);
  for (Value v : plan.root.ids()) {
    plan.storage[v] = plan.storage[plan.root[v]];
  }
}

// Operands worth preparing once per step: not batched, read by a node that says so.
void set_prepacked(PlanDraft& plan) {
  const Graph& graph = plan.graph;
  plan.prepacked_slot.assign(graph.nodes.size(), -1);
  for (PlanStep& step : plan.steps) {
    if (!step.is<LoopStep>()) continue;
    for (NodeId n : step.nodes()) {
      const Node& node = graph.nodes[n];
      if (!node.op->prepacking) continue;
      const Value operand = node.inputs[std::size_t(node.op->prepacking.operand)];
      if (graph.type(operand).batched()) continue;
      plan.prepacked_slot[n] = plan.prepacked_slots;
      step.base().prepack.push_back({n, operand, plan.prepacked_slots++});
    }
  }
}

PlanDraft draft_of(Graph graph, const PlanOptions& options);

void compile_bodies(PlanDraft& plan, const PlanOptions& options) {
  for (NodeId n : plan.graph.nodes.ids()) {
    const Node& node = plan.graph.nodes[n];
    if (!node.op->has(kControl)) continue;
    plan.bodies[n];
    for (const GraphPtr& region : node.regions) {
      Graph graph = *region;
      if (options.write_in_place && region == node.regions.back()) {
        plan.element_writes[n] = take_element_writes(plan.graph, node, graph);
      }
      graph.replicas = plan.graph.replicas;
      PlanDraft body = draft_of(std::move(graph), options);
      if (node.attrs.get_if<RoundsAttrs>()) {
        keep_prepacked(body, ControlSignature(node).outer_argument);
        if (verifies_programs()) verify(body, PlanStage::kLiveRanges);
      }
      plan.has_random |= body.has_random;
      plan.bodies[n].push_back(std::make_shared<const Plan>(std::move(body)));
    }
  }
}

// Removes steps that only show bytes in another shape: their readers read the alias root.
void leave_out_views(PlanDraft& plan) {
  IndexedVector<StepId, PlanStep> steps;
  for (PlanStep& step : plan.steps) {
    const bool views = step.is<NodeStep>() && bytes_are_shared(plan.graph.nodes[step.nodes()[0]]);
    if (!views) steps.push_back(std::move(step));
  }
  plan.steps = std::move(steps);
}

void set_stores(PlanDraft& plan, const PlanOptions& options) {
  plan.stores = decide_stores(plan, options.write_in_place);
}

void set_collective_done(PlanDraft& plan) {
  plan.collective_done = find_collective_done(plan);
}

void set_live_ranges(PlanDraft& plan) {
  plan.live_ranges = find_live_ranges(plan);
}

template <void (*kFunction)(PlanDraft&)>
void without_options(PlanDraft& plan, const PlanOptions&) {
  kFunction(plan);
}

PlanDraft draft_of(Graph graph, const PlanOptions& options) {
  PlanDraft plan;
  plan.graph = run_passes(std::move(graph), options.passes);
  for (const Node& node : plan.graph.nodes) plan.has_random |= draws_by_step(*node.op);
  compile_bodies(plan, options);
  using Function = void (*)(PlanDraft&, const PlanOptions&);
  const struct {
    bool wanted;
    PlanStage stage;  // that is complete afterwards
    Function run;
  } functions[] = {
      {true, PlanStage::kSteps, schedule},
      {options.sparse_rows, PlanStage::kSteps, without_options<find_sparse_updates>},
      {options.fuse_updates, PlanStage::kSteps, without_options<fuse_updates>},
      {true, PlanStage::kRoots, without_options<set_roots>},
      {true, PlanStage::kStorage, without_options<set_storage>},
      {true, PlanStage::kPrepacked, without_options<set_prepacked>},
      {true, PlanStage::kInnerLoops, form_inner_loops},
      {true, PlanStage::kInnerLoops, without_options<choose_tiles>},
      {true, PlanStage::kInnerLoops, without_options<leave_out_views>},
      {options.write_in_place, PlanStage::kInnerLoops, without_options<sink_stores>},
      {options.join_small_nodes, PlanStage::kInnerLoops, without_options<join_small_nodes>},
      {true, PlanStage::kStores, set_stores},
      {true, PlanStage::kCollectiveDone, without_options<set_collective_done>},
      {true, PlanStage::kLiveRanges, without_options<set_live_ranges>},
  };
  for (const auto& [wanted, stage, run] : functions) {
    if (!wanted) continue;
    run(plan, options);
    if (verifies_programs()) verify(plan, stage);
  }
  return plan;
}

}  // namespace

Plan compile(Graph graph, const PlanOptions& options) {
  return Plan(draft_of(std::move(graph), options));
}

}  // namespace samegrad
