#include <algorithm>

#include "plan/buffers.h"
#include "plan/cost.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace samegrad {
namespace {

bool bytes_are_shared(const Node& node) {
  return node.op->has(kAliases);
}

void set_roots(Plan& plan) {
  plan.root.resize(plan.graph.values.size());
  for (std::size_t v = 0; v < plan.root.size(); ++v) plan.root[v] = Value(v);
  std::vector<Value> first_read(plan.graph.variables.size(), kNoValue);
  for (std::size_t v = 0; v < plan.root.size(); ++v) {
    const ValueInfo& info = plan.graph.values[v];
    if (info.source != Source::kVariable) continue;
    Value& first = first_read[std::size_t(info.index)];
    first = first == kNoValue ? Value(v) : first;
    plan.root[v] = first;
  }
  for (const Node& node : plan.graph.nodes) {
    if (!bytes_are_shared(node)) continue;
    plan.root[std::size_t(node.outputs[0])] = plan.root[std::size_t(node.inputs[0])];
  }
}

// Which loop runs a node, or -1.
std::vector<std::int32_t> loops_of_nodes(const Plan& plan) {
  std::vector<std::int32_t> owner(plan.graph.nodes.size(), -1);
  for (std::size_t i = 0; i < plan.loops.size(); ++i) {
    for (std::int32_t node : plan.loops[i].nodes) owner[std::size_t(node)] = std::int32_t(i);
  }
  return owner;
}

// What a step of reductions and an update makes and uses up block by block.
std::vector<bool> values_inside_updates(const Plan& plan) {
  std::vector<bool> inside(plan.graph.values.size(), false);
  for (const ReduceUpdate& update : plan.updates) {
    for (const ReduceUpdate::Sum& sum : update.sums) {
      if (sum.tree >= 0) {
        inside[std::size_t(plan.graph.nodes[std::size_t(sum.tree)].outputs[0])] = true;
      }
      inside[std::size_t(sum.result)] = update.update >= 0;
    }
  }
  for (const RowUpdate& update : plan.row_updates) {
    for (const ReduceUpdate::Sum& sum : update.sums) {
      inside[std::size_t(plan.graph.nodes[std::size_t(sum.tree)].outputs[0])] = true;
      inside[std::size_t(sum.result)] = true;
    }
    for (std::int32_t n : update.nodes) {
      for (Value output : plan.graph.nodes[std::size_t(n)].outputs) {
        inside[std::size_t(output)] = std::ranges::none_of(
            update.results, [&](const RowUpdate::Result& r) { return r.value == output; });
      }
    }
  }
  return inside;
}

void set_storage(Plan& plan) {
  const Graph& graph = plan.graph;
  const std::vector<std::int32_t> owner = loops_of_nodes(plan);
  const std::vector<bool> inside = values_inside_updates(plan);
  plan.storage.assign(graph.values.size(), Storage::kExternal);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool tile = owner[n] >= 0 && node.locality == Locality::kExample;
    for (Value output : node.outputs) {
      plan.storage[std::size_t(output)] = inside[std::size_t(output)] ? Storage::kUnused
                                          : tile                      ? Storage::kTile
                                          : graph.varying(output)     ? Storage::kReplica
                                                                      : Storage::kShared;
    }
  }
  // What is read outside its loop must exist as a whole.
  const auto keep_whole = [&](Value value) {
    const Value root = plan.root[std::size_t(value)];
    if (plan.storage[std::size_t(root)] != Storage::kTile) return;
    plan.storage[std::size_t(root)] = graph.varying(root) ? Storage::kReplica : Storage::kShared;
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.op->reads(k)) continue;
      const Node* producer = graph.producer(plan.root[std::size_t(node.inputs[k])]);
      if (!producer) continue;
      if (owner[std::size_t(producer - graph.nodes.data())] != owner[n]) keep_whole(node.inputs[k]);
    }
  }
  for (Value output : graph.outputs) keep_whole(output);
  for (const StateWrite& write : graph.writes) keep_whole(write.value);
  for (std::size_t v = 0; v < plan.root.size(); ++v) {
    plan.storage[v] = plan.storage[std::size_t(plan.root[v])];
  }
}

// Operands worth preparing once per step: not batched, read by a node that says so.
void set_prepared(Plan& plan) {
  const Graph& graph = plan.graph;
  plan.prepared_slot.assign(graph.nodes.size(), -1);
  for (PlanStep& step : plan.steps) {
    if (step.kind != PlanStep::Kind::kLoop) continue;
    for (std::int32_t n : plan.loops[std::size_t(step.index)].nodes) {
      const Node& node = graph.nodes[std::size_t(n)];
      if (node.op->prepared_operand < 0) continue;
      const Value operand = node.inputs[std::size_t(node.op->prepared_operand)];
      if (graph.type(operand).batched()) continue;
      plan.prepared_slot[std::size_t(n)] = plan.prepared_slots;
      step.prepare.push_back({n, operand, plan.prepared_slots++});
    }
  }
}

void compile_bodies(Plan& plan, const PlanOptions& options) {
  for (std::size_t n = 0; n < plan.graph.nodes.size(); ++n) {
    const Node& node = plan.graph.nodes[n];
    if (!node.op->has(kControl)) continue;
    plan.bodies[std::int32_t(n)];
    for (const GraphPtr& region : node.regions) {
      Graph graph = *region;
      graph.replicas = plan.graph.replicas;
      plan.bodies[std::int32_t(n)].push_back(compile(std::move(graph), options));
      plan.has_random |= plan.bodies[std::int32_t(n)].back().has_random;
    }
  }
}

}  // namespace

Plan compile(Graph graph, const PlanOptions& options) {
  Plan plan;
  plan.graph = run_passes(std::move(graph), options.passes);
  for (const Node& node : plan.graph.nodes) plan.has_random |= node.op->has(kRandomOp);
  compile_bodies(plan, options);
  schedule(plan, options);
  if (options.sparse_rows) find_row_updates(plan);
  if (options.fuse_updates) fuse_updates(plan);
  set_roots(plan);
  set_storage(plan);
  set_prepared(plan);
  form_inner_loops(plan, options);
  choose_tiles(plan);
  if (options.write_in_place) put_updates_last(plan);
  plan.stores = decide_stores(plan, options.write_in_place);
  plan.lives = find_lives(plan);
  return plan;
}

}  // namespace samegrad
