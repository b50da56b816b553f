#include "plan/recorded_results.h"

#include <algorithm>
#include <set>

#include "ir/op_def.h"
#include "ops/fused.h"

namespace samegrad {
namespace {

bool is_by_element(const Node& node) {
  return node.op->has(kElementwise) || node.op->has(kAliases);
}

// Loops may have the sums of their iterations among their results.
bool is_source(const Graph& graph, const Node& node) {
  if (node.op->has(kCollective)) return !node.op->exchange;
  if (node.locality == Locality::kBatchReduction) return !graph.varying(node.outputs[0]);
  return node.op->has(kControl) || (node.derivative && !is_by_element(node));
}

// Values that a new value of a variable is made of, element by element, up to sums.
struct UpdateOrigin {
  std::vector<Value> sums;     // sorted
  std::set<SlotId> variables;  // that are read
  std::set<Value> values;
};

// -1: it depends on the number of examples.
std::int64_t elements_of(const Graph& graph, Value value) {
  const ValueType& type = graph.type(value);
  return type.batched() || type.shape.symbolic() ? -1 : type.shape.size(0, type.shape.rank());
}

UpdateOrigin origin_of(const Graph& graph, Value update) {
  UpdateOrigin origin;
  std::vector<Value> open = {update};
  const std::int64_t elements = elements_of(graph, update);
  while (!open.empty()) {
    const Value value = open.back();
    open.pop_back();
    if (elements_of(graph, value) != elements || !origin.values.insert(value).second) continue;
    const ValueInfo& info = graph.values[value];
    if (info.source == Source::kVariable) origin.variables.insert(info.slot());
    const Node* node = graph.producer(value);
    if (!node) continue;
    if (value != update && is_source(graph, *node)) {
      origin.sums.push_back(value);
    } else if (is_by_element(*node)) {
      const auto result =
          std::size_t(std::ranges::find(node->outputs, value) - node->outputs.begin());
      for (const std::size_t operand : operands_of_result(*node, result)) {
        if (node->op->reads(operand)) open.push_back(node->inputs[operand]);
      }
    }
  }
  std::ranges::sort(origin.sums);
  return origin;
}

struct Update {
  StateWrite write;
  UpdateOrigin origin;

  bool reads(const Update& other) const {
    return origin.variables.contains(other.write.variable) ||
           origin.values.contains(other.write.value);
  }
};

}  // namespace

RecordedResults recorded_results(const Graph& graph) {
  std::vector<StateWrite> writes = graph.writes;
  std::ranges::stable_sort(writes, {}, &StateWrite::variable);
  RecordedResults found;
  std::vector<Update> recorded;
  for (const StateWrite& write : writes) {
    Update update{write, origin_of(graph, write.value)};
    // A program reads its weights before the slots of their optimizer.
    const bool is_slot = std::ranges::any_of(recorded, [&](const Update& other) {
      return !update.origin.sums.empty() && (update.reads(other) || other.reads(update));
    });
    if (is_slot) continue;
    for (const Value sum : update.origin.sums) found.sums.push_back({write.variable, sum});
    found.writes.push_back(write);
    recorded.push_back(std::move(update));
  }
  return found;
}

}  // namespace samegrad
