// Programs of one function for different counts of examples: they get slots for the same variables.
#include <algorithm>

#include "passes/merge_specializations.h"
#include "passes/passes.h"
#include "train/program.h"

namespace samegrad {
namespace {

using Cells = std::vector<std::shared_ptr<StateCell>>;

SlotId slot_of(const std::shared_ptr<StateCell>& cell, const VariableSlot& slot, Program& all) {
  const auto at = std::ranges::find(all.variables, cell);
  const SlotId found(at - all.variables.begin());
  if (at == all.variables.end()) {
    all.variables.push_back(cell);
    all.graph.variables.push_back(slot);
  }
  return found;
}

// Numbers the variables as they are in `all`, which gets those that it does not have.
void renumber(Program& program, Program& all) {
  IndexedVector<SlotId, SlotId> slots;
  for (SlotId v : program.graph.variables.ids()) {
    slots.push_back(slot_of(program.variables[v.index()], program.graph.variables[v], all));
  }
  for (ValueInfo& info : program.graph.values) {
    if (info.source == Source::kVariable) info.index = slots[info.slot()].number();
  }
  for (StateWrite& write : program.graph.writes) {
    write.variable = slots[write.variable];
  }
}

Value read_of(Graph& graph, SlotId slot, const ValueType& type) {
  for (Value v : graph.values.ids()) {
    const ValueInfo& info = graph.values[v];
    if (info.source == Source::kVariable && info.slot() == slot) return v;
  }
  return graph.add_read(slot, type);
}

// A variable that only other programs write keeps its value.
void complete_writes(Graph& graph, const std::vector<std::pair<SlotId, ValueType>>& written) {
  std::vector<StateWrite> writes;
  for (const auto& [slot, type] : written) {
    const auto own = std::ranges::find(graph.writes, slot, &StateWrite::variable);
    writes.push_back(own != graph.writes.end() ? *own
                                               : StateWrite{slot, read_of(graph, slot, type)});
  }
  graph.writes = std::move(writes);
}

}  // namespace

Program join_programs(std::vector<Program> programs, const std::vector<std::string>& split_at) {
  Program joined;
  joined.processes = programs[0].processes;
  std::vector<std::pair<SlotId, ValueType>> written;
  for (Program& program : programs) {
    renumber(program, joined);
    for (const StateWrite& write : program.graph.writes) {
      const bool known = std::ranges::any_of(
          written, [&](const auto& other) { return other.first == write.variable; });
      if (!known) written.emplace_back(write.variable, program.graph.type(write.value));
    }
  }
  std::vector<Specialization> traces;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    Graph& graph = programs[p].graph;
    graph.variables = joined.graph.variables;
    complete_writes(graph, written);
    traces.push_back({without_gradient_rules(std::move(graph)), split_at[p]});
  }
  joined.graph = merge_specializations(traces);
  return joined;
}

}  // namespace samegrad
