#include <algorithm>
#include <map>

#include "base/error.h"
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

void set_storage(Plan& plan) {
  const Graph& graph = plan.graph;
  const std::vector<std::int32_t> owner = loops_of_nodes(plan);
  plan.storage.assign(graph.values.size(), Storage::kExternal);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool tile = owner[n] >= 0 && node.locality == Locality::kExample;
    for (Value output : node.outputs) {
      plan.storage[std::size_t(output)] = tile                    ? Storage::kTile
                                          : graph.varying(output) ? Storage::kReplica
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
    for (std::int32_t n : plan.loops[std::size_t(step.loop)].nodes) {
      const Node& node = graph.nodes[std::size_t(n)];
      if (node.op->prepared_operand < 0) continue;
      const Value operand = node.inputs[std::size_t(node.op->prepared_operand)];
      if (graph.type(operand).batched()) continue;
      plan.prepared_slot[std::size_t(n)] = plan.prepared_slots;
      step.prepare.push_back({n, operand, plan.prepared_slots++});
    }
  }
}

// Where the steps begin that cannot fail: a step that raises must leave the variables as they were.
std::size_t safe_steps(const Plan& plan) {
  std::size_t first = plan.steps.size();
  while (first > 0) {
    const PlanStep& step = plan.steps[first - 1];
    const bool safe = step.kind == PlanStep::Kind::kAllReduce ||
                      (step.kind == PlanStep::Kind::kNode &&
                       plan.graph.nodes[std::size_t(step.nodes[0])].op->has(kElementwise));
    if (!safe) break;
    --first;
  }
  return first;
}

// A write goes straight into the variable's memory if whoever reads the old value has done so
// before the producer runs, or is the producer itself (elementwise: each element is read before it
// is written), and no later step can fail.
void set_writes(Plan& plan, const PlanOptions& options) {
  const Graph& graph = plan.graph;
  const std::size_t safe = options.write_in_place ? safe_steps(plan) : plan.steps.size();
  std::vector<std::int32_t> position(graph.nodes.size(), 0);
  std::vector<const PlanStep*> step_of(graph.nodes.size(), nullptr);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    const auto& nodes =
        step.kind == PlanStep::Kind::kLoop ? plan.loops[std::size_t(step.loop)].nodes : step.nodes;
    for (std::int32_t n : nodes) {
      position[std::size_t(n)] = std::int32_t(s);
      step_of[std::size_t(n)] = &step;
    }
  }
  std::map<Value, int> uses;
  for (Value output : graph.outputs) ++uses[plan.root[std::size_t(output)]];
  for (const StateWrite& write : graph.writes) ++uses[plan.root[std::size_t(write.value)]];
  for (const StateWrite& write : graph.writes) {
    const Node* producer = graph.producer(write.value);
    bool direct = producer && producer->op->has(kElementwise) && uses[write.value] == 1 &&
                  plan.storage[std::size_t(write.value)] == Storage::kShared;
    const auto at = producer ? std::size_t(producer - graph.nodes.data()) : 0;
    direct = direct && step_of[at] && step_of[at]->kind == PlanStep::Kind::kNode &&
             std::size_t(position[at]) >= safe;
    for (std::size_t n = 0; direct && n < graph.nodes.size(); ++n) {
      for (Value input : graph.nodes[n].inputs) {
        const ValueInfo& root = graph.values[std::size_t(plan.root[std::size_t(input)])];
        const bool reads_old = root.source == Source::kVariable &&
                               graph.variables[std::size_t(root.index)].cell == write.cell;
        if (reads_old && n != at && position[n] >= position[at]) direct = false;
      }
    }
    for (Value output : graph.outputs) {
      const ValueInfo& root = graph.values[std::size_t(plan.root[std::size_t(output)])];
      if (root.source == Source::kVariable &&
          graph.variables[std::size_t(root.index)].cell == write.cell) {
        direct = false;
      }
    }
    plan.written_in_place.push_back(direct);
  }
}

void compile_bodies(Plan& plan, const PlanOptions& options) {
  for (std::size_t n = 0; n < plan.graph.nodes.size(); ++n) {
    const Node& node = plan.graph.nodes[n];
    if (!node.op->has(kControl)) continue;
    plan.bodies[std::int32_t(n)];
    for (const auto& [name, value] : node.attrs.items()) {
      const auto* body = std::get_if<std::shared_ptr<const Graph>>(&value);
      if (!body) continue;
      Graph graph = **body;
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
  set_roots(plan);
  set_storage(plan);
  set_prepared(plan);
  form_inner_loops(plan, options);
  set_writes(plan, options);
  return plan;
}

}  // namespace samegrad
