#include "train/operation_hashes.h"

#include <unordered_map>

#include "ir/op_def.h"
#include "plan/explain.h"

namespace samegrad {
namespace {

std::string line_of(const Node& node, const Locations& locations) {
  const bool known = node.location >= 0 && std::size_t(node.location) < locations.size();
  return known ? locations[std::size_t(node.location)] : std::string();
}

class Lister {
 public:
  explicit Lister(const Locations& locations) : locations_(locations) {}

  // `outside`: what the arguments of the graph are made of; null: they are those of the program.
  // Returns the operations whose results are the outputs.
  std::vector<std::int32_t> list(const Plan& plan, const Hashes& hashes,
                                 const std::vector<std::int32_t>* outside) {
    const Graph& graph = plan.graph;
    std::unordered_map<Value, std::int32_t> made_by;  // per root
    const auto source_of = [&](Value value) {
      const auto found = made_by.find(plan.root[value]);
      return found == made_by.end() ? -1 - plan.root[value].number() : found->second;
    };
    const std::size_t first = operations.size();
    for (const NodeId n : graph.nodes.ids()) {
      const Node& node = graph.nodes[n];
      if (node.op->has(kAliases)) continue;
      std::vector<std::int32_t> inputs;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.op->reads(k)) inputs.push_back(source_of(node.inputs[k]));
      }
      const auto bodies = plan.bodies.find(n);
      if (bodies != plan.bodies.end()) {
        std::vector<std::int32_t> results;
        for (const auto& body : bodies->second) {
          const std::vector<std::int32_t> of_body = list(*body, *hashes.body(*body), &inputs);
          results.insert(results.end(), of_body.begin(), of_body.end());
        }
        inputs.insert(inputs.end(), results.begin(), results.end());
      }
      const Value result = node.outputs.empty() ? kNoValue : node.outputs[0];
      OperationHash operation{.op = node.op->name,
                              .type = {},
                              .line = line_of(node, locations_),
                              .inputs = std::move(inputs),
                              .hashes = {}};
      if (result.exists()) operation.type = to_string(graph.type(result));
      for (const Value output : node.outputs) {
        operation.placement = std::max(operation.placement, graph.placement(output));
        operation.hashes.push_back(hashes.has(output) ? hashes.of(output) : 0);
        made_by[plan.root[output]] = std::int32_t(operations.size());
      }
      operations.push_back(std::move(operation));
    }
    std::vector<std::int32_t> results;
    for (const Value output : graph.outputs) {
      if (const std::int32_t source = source_of(output); source >= 0) results.push_back(source);
    }
    if (outside) enter(first, *outside, results);
    return results;
  }

  std::vector<OperationHash> operations;

 private:
  // Arguments of a body are what it is given, or, in later iterations, its own results.
  void enter(std::size_t first, const std::vector<std::int32_t>& outside,
             const std::vector<std::int32_t>& results) {
    for (std::size_t i = first; i < operations.size(); ++i) {
      std::vector<std::int32_t>& inputs = operations[i].inputs;
      if (std::ranges::none_of(inputs, [](std::int32_t input) { return input < 0; })) continue;
      std::erase_if(inputs, [](std::int32_t input) { return input < 0; });
      inputs.insert(inputs.end(), outside.begin(), outside.end());
      inputs.insert(inputs.end(), results.begin(), results.end());
    }
  }

  const Locations& locations_;
};

}  // namespace

std::vector<OperationHash> operation_hashes(const Plan& plan, const Hashes& hashes,
                                            const Locations& locations) {
  Lister lister(locations);
  lister.list(plan, hashes, nullptr);
  return std::move(lister.operations);
}

std::vector<StoredHash> stored_hashes(const Plan& plan, const Hashes& hashes,
                                      const Locations& locations) {
  std::vector<StoredHash> stored;
  for (const PlanStep& step : plan.steps) {
    for (const NodeId n : step.nodes()) {
      const Node& node = plan.graph.nodes[n];
      for (const Value output : node.outputs) {
        if (plan.root[output] != output || !hashes.has(output)) continue;
        if (plan.storage[output] == Storage::kUnused && hashes.of(output) == 0) continue;
        stored.push_back({step.title(plan), node.op->name, to_string(plan.graph.type(output)),
                          line_of(node, locations), hashes.of(output)});
      }
    }
  }
  return stored;
}

}  // namespace samegrad
