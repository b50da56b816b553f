#include "runtime/shared_state.h"

#include <algorithm>
#include <unordered_map>

#include "base/thresholds.h"
#include "runtime/steps/block_update.h"

namespace samegrad {
namespace {

// By what they write: those into their variable's memory, of which ranks may have one together.
using Writes = std::unordered_map<Value, std::size_t>;

Writes large_writes_in_place(const Plan& plan, const ExecuteParams& call) {
  const auto least = std::size_t(thresholds().common_state_bytes);
  Writes found;
  for (std::size_t w = 0; w < plan.graph.writes.size(); ++w) {
    const StateWrite& write = plan.graph.writes[w];
    if (plan.stores[w] != Aliasing::kInPlace) continue;
    const PerReplica<Array>& components = call.variables[write.variable.index()]->components();
    if (components.size() == 1 && components[0].bytes() >= least) found[plan.root[write.value]] = w;
  }
  return found;
}

// The write of each result of an update, if all of them are among those, and ranks can share the
// work; else none.
std::vector<std::size_t> shared_writes(const Plan& plan, const BlockUpdateStep& update,
                                       const UpdateBinding& binding, const Writes& large,
                                       ExecutionContext& context) {
  if (!update.has_replicas() || !update.update.exists()) return {};
  std::vector<std::size_t> writes;
  for (const Value result : plan.graph.nodes[update.update].outputs) {
    const auto found = large.find(plan.root[result]);
    if (found == large.end()) return {};
    writes.push_back(found->second);
  }
  return can_share(binding, context.world_sums()) ? writes : std::vector<std::size_t>{};
}

// Memory for those that have no place in common; false: there is none.
bool find_places(const Plan& plan, const std::vector<std::size_t>& writes,
                 const ExecuteParams& call) {
  std::vector<std::pair<StateCell*, std::int64_t>> fresh;
  std::int64_t end = 0;
  for (const std::size_t w : writes) {
    StateCell& variable = *call.variables[plan.graph.writes[w].variable.index()];
    if (variable.common) continue;
    const auto bytes = std::int64_t(variable.components()[0].bytes());
    const std::int64_t offset = SharedParameters::next_offset(end, bytes);
    fresh.emplace_back(&variable, offset);
    end = offset + bytes;
  }
  if (fresh.empty()) return true;
  const auto memory = call.communicator->common(SharedParameters::next_offset(end, 1));
  if (!memory) return false;
  for (const auto& [variable, offset] : fresh) {
    variable->common = std::make_unique<SharedLocation>(memory, offset);
  }
  return true;
}

}  // namespace

std::vector<Array> shared_state(const Plan& plan, const ExecuteParams& call,
                                ExecutionContext& context) {
  std::vector<StepId> updates;
  for (const StepId s : plan.steps.ids()) {
    if (!plan.steps[s].is<BlockUpdateStep>()) continue;
    context.binding<UpdateBinding>(s).in_common = false;
    updates.push_back(s);
  }
  if (!call.communicator || !call.communicator->shared() || call.dry) return {};
  if (call.communicator->size() < 2) return {};
  const Writes large = large_writes_in_place(plan, call);
  if (large.empty()) return {};
  std::vector<std::size_t> writes;
  std::vector<UpdateBinding*> in_common;
  for (const StepId s : updates) {
    auto& binding = context.binding<UpdateBinding>(s);
    const auto& step = *plan.steps[s].get_if<BlockUpdateStep>();
    const std::vector<std::size_t> of = shared_writes(plan, step, binding, large, context);
    if (of.empty()) continue;
    writes.insert(writes.end(), of.begin(), of.end());
    in_common.push_back(&binding);
  }
  if (writes.empty() || !find_places(plan, writes, call)) return {};
  std::vector<Array> arrays(plan.graph.writes.size());
  for (const std::size_t w : writes) {
    StateCell& variable = *call.variables[plan.graph.writes[w].variable.index()];
    arrays[w] = variable.common->array(variable.components()[0]);
  }
  for (UpdateBinding* binding : in_common) binding->in_common = true;
  return arrays;
}

}  // namespace samegrad
