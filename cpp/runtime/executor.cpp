#include "runtime/executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "plan/schedule.h"
#include "runtime/state_lock.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

bool holds_alone(const Array& array) {
  return array.buffer().use_count() == 1 && array.buffer()->owns_memory();
}

StateCell* cell_of(const Graph& graph, Value root) {
  const ValueInfo& info = graph.values[std::size_t(root)];
  if (info.source != Source::kVariable) return nullptr;
  return graph.variables[std::size_t(info.index)].cell.get();
}

}  // namespace

Executable::Executable(Plan plan) : plan_(std::move(plan)) {
  for (const Loop& loop : plan_.loops) layouts_.push_back(lay_out(plan_, loop));
  for (auto& [node, plans] : plan_.bodies) {
    bodies_[node];
    for (Plan& body : plans) bodies_[node].push_back(std::make_unique<Executable>(std::move(body)));
  }
}

std::vector<std::vector<Array>> Executable::run(const Call& call) {
  std::optional<StateLock> turn;
  if (!plan_.graph.writes.empty()) {
    turn.emplace(StateLock::Use::kWrite);
  } else if (!plan_.graph.variables.empty()) {
    turn.emplace(StateLock::Use::kRead);
  }
  std::unique_ptr<Context> context = lease(call);
  const FloatEnvironment environment;
  std::vector<std::vector<Array>> outputs = run(call, *context);
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(context));
  return outputs;
}

std::unique_ptr<Context> Executable::lease(const Call& call) {
  std::unique_ptr<Context> context;
  const int threads = parallel_loops().threads();
  {
    const std::lock_guard lock(mutex_);
    for (auto& candidate : free_) {
      if (candidate->is_bound_to(call.counts, threads)) std::swap(candidate, free_.back());
    }
    if (!free_.empty()) {
      context = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!context) context = std::make_unique<Context>(plan_, layouts_);
  if (!context->is_bound_to(call.counts, threads)) context->bind(call.counts, threads);
  return context;
}

void Executable::set_arguments(const Call& call, Context& context) {
  const Graph& graph = plan_.graph;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ValueInfo& info = graph.values[v];
    if (info.source == Source::kNode) continue;
    const std::vector<Array>* arrays = nullptr;
    if (info.source == Source::kArgument) arrays = &call.arguments[std::size_t(info.index)];
    if (info.source == Source::kVariable) {
      arrays = &graph.variables[std::size_t(info.index)].cell->components();
    }
    for (int r = 0; r < context.replicas(); ++r) {
      const auto at = std::size_t(r);
      context.base(r, Value(v)) = !arrays ? graph.constants[std::size_t(info.index)].raw()
                                          : (*arrays)[arrays->size() == 1 ? 0 : at].raw();
    }
  }
}

std::vector<std::vector<Array>> Executable::make_outputs(const Call& call, Context& context) {
  const Graph& graph = plan_.graph;
  std::vector<std::vector<Array>> outputs;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const Value output = graph.outputs[i];
    const Value root = plan_.root[std::size_t(output)];
    const int copies = graph.varying(output) ? context.replicas() : 1;
    // The same bytes may be asked for twice.
    const auto earlier =
        std::find_if(graph.outputs.begin(), graph.outputs.begin() + std::ptrdiff_t(i),
                     [&](Value v) { return plan_.root[std::size_t(v)] == root; });
    std::vector<Array> arrays;
    for (int r = 0; r < copies; ++r) {
      const ValueType& type = graph.type(output);
      const Shape shape = concrete_shape(type, call.counts[std::size_t(r)]);
      if (std::size_t(earlier - graph.outputs.begin()) < i) {
        arrays.push_back(
            outputs[std::size_t(earlier - graph.outputs.begin())][std::size_t(r)].reshaped(shape));
        continue;
      }
      arrays.emplace_back(type.dtype, shape);
      if (graph.values[std::size_t(root)].source == Source::kNode) {
        context.base(r, root) = arrays.back().raw();
      }
    }
    for (int r = copies; r < context.replicas(); ++r) {
      if (graph.values[std::size_t(root)].source == Source::kNode) {
        context.base(r, root) = context.base(0, root);
      }
    }
    outputs.push_back(std::move(arrays));
  }
  return outputs;
}

// New arrays where somebody else still holds the variable's; the old ones stay readable until the
// step is over.
void Executable::set_state(Context& context, std::vector<std::vector<Array>>& fresh) {
  const Graph& graph = plan_.graph;
  for (std::size_t w = 0; w < graph.writes.size(); ++w) {
    const StateWrite& write = graph.writes[w];
    std::vector<Array> arrays;
    for (const Array& old : write.cell->components()) {
      arrays.push_back(holds_alone(old) ? old : Array(old.dtype(), old.shape()));
    }
    if (plan_.written_in_place[w]) {
      for (int r = 0; r < context.replicas(); ++r) context.base(r, write.value) = arrays[0].raw();
    }
    fresh.push_back(std::move(arrays));
  }
}

void Executable::commit_state(Context& context, std::vector<std::vector<Array>>& fresh) {
  const Graph& graph = plan_.graph;
  for (std::size_t w = 0; w < graph.writes.size(); ++w) {
    const StateWrite& write = graph.writes[w];
    const Value root = plan_.root[std::size_t(write.value)];
    // A variable that is set to another's old value must not see the other's new one.
    if (!plan_.written_in_place[w] && cell_of(graph, root)) {
      for (Array& array : fresh[w]) array = Array(array.dtype(), array.shape());
    }
  }
  for (std::size_t w = 0; w < graph.writes.size(); ++w) {
    if (plan_.written_in_place[w]) continue;
    const StateWrite& write = graph.writes[w];
    const Value root = plan_.root[std::size_t(write.value)];
    for (std::size_t c = 0; c < fresh[w].size(); ++c) {
      const std::byte* from = context.base(int(c), root);
      if (fresh[w][c].raw() != from) std::memcpy(fresh[w][c].raw(), from, fresh[w][c].bytes());
    }
  }
  for (std::size_t w = 0; w < graph.writes.size(); ++w) {
    std::ranges::move(fresh[w], graph.writes[w].cell->components().begin());
  }
}

void Executable::run_step(const PlanStep& step, const Call& call, Context& context) {
  prepare_operands(plan_, step, context);
  switch (step.kind) {
    case PlanStep::Kind::kLoop:
      return run_loop(plan_, step.loop, layouts_[std::size_t(step.loop)], call, context);
    case PlanStep::Kind::kAllReduce:
      return all_reduce(plan_, step.nodes, context);
    case PlanStep::Kind::kControl:
      return run_control(plan_, step.nodes[0], bodies_.at(step.nodes[0]), call, context);
    case PlanStep::Kind::kNode:
      return run_node(plan_, step.nodes[0], call, context);
  }
}

std::vector<std::vector<Array>> Executable::run(const Call& call, Context& context) {
  const Graph& graph = plan_.graph;
  for (int r = 0; r < context.replicas(); ++r) {
    context.facts(r).seed = call.seed;
    context.facts(r).step = call.step;
  }
  set_arguments(call, context);
  std::vector<std::vector<Array>> outputs = make_outputs(call, context);
  std::vector<std::vector<Array>> fresh;
  set_state(context, fresh);
  context.refresh();
  for (const PlanStep& step : plan_.steps) run_step(step, call, context);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value root = plan_.root[std::size_t(graph.outputs[i])];
    if (graph.values[std::size_t(root)].source == Source::kNode) continue;
    for (std::size_t r = 0; r < outputs[i].size(); ++r) {
      std::memcpy(outputs[i][r].raw(), context.base(int(r), root), outputs[i][r].bytes());
    }
  }
  commit_state(context, fresh);
  context.histories.clear();
  return outputs;
}

void check_finite(const Graph& graph, const Node& node, const View& result, int replica) {
  if (!is_floating(result.dtype)) return;
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const double x =
        result.dtype == DType::kFloat32 ? result.as<float>()[i] : result.as<double>()[i];
    if (std::isfinite(x)) continue;
    const std::string line =
        node.location >= 0 ? " (" + graph.locations[std::size_t(node.location)] + ")" : "";
    fail(ErrorKind::kNonFinite, node.op->name, "made ", std::isnan(x) ? "NaN" : "an infinity",
         " at element ", i, " of a result of shape ", to_string(result.shape), " on replica ",
         replica, line,
         "; look at its operands: data that is not finite, a division by zero, a log "
         "of zero, or a learning rate that is too high.");
  }
}

}  // namespace samegrad
