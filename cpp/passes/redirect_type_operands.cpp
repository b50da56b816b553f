// Shape-only operands: a node that uses only the type of an operand reads another value of the same
// type. The original need then not be computed or stored. The other value is an operand of an
// elementwise value, or, for values without other readers, a value that exists anyway.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

class TypeSources {
 public:
  explicit TypeSources(const Graph& graph)
      : graph_(graph), depth_(graph.values.size(), 0), read_(graph.values.size(), false) {
    for (const Node& node : graph.nodes) {
      int depth = 0;
      for (Value input : node.inputs) depth = std::max(depth, depth_[input]);
      for (Value output : node.outputs) depth_[output] = depth + 1;
    }
    for (Value output : graph.outputs) read_[output] = true;
    for (const StateWrite& write : graph.writes) read_[write.value] = true;
    for (NodeId n : graph.nodes.ids().reversed()) {
      const Node& node = graph.nodes[n];
      const bool runs = holds(node, kSideEffect) ||
                        std::ranges::any_of(node.outputs, [&](Value v) { return read_[v]; });
      for (std::size_t k = 0; runs && k < node.inputs.size(); ++k) {
        if (node.op->reads(k)) read_[node.inputs[k]] = true;
      }
    }
  }

  // The operand to ask instead.
  Value operator()(const Node& node, std::size_t operand) {
    const Value input = node.inputs[operand];
    if (node.op->reads(operand)) return input;
    const Value value = first_of_elementwise(input);
    return read_[value] || !graph_.producer(value) ? value : made_anyway(value);
  }

 private:
  // Follows the operand of equal type that has the fewest nodes before it. A loop with the asking
  // node's readers could not include the other operands: their path leads through that node.
  Value first_of_elementwise(Value value) const {
    for (;;) {
      const Node* node = graph_.producer(value);
      if (!node || !node->op->has(kElementwise)) return value;
      Value first = kNoValue;
      for (const Value input : node->inputs) {
        if (graph_.type(input) != graph_.type(value)) continue;
        if (!first.exists() || depth_[input] < depth_[first]) first = input;
      }
      if (!first.exists()) return value;
      value = first;
    }
  }

  bool is_alike(Value a, Value b) const {
    return graph_.type(a) == graph_.type(b) && graph_.placement(a) == graph_.placement(b);
  }

  // A value that is an argument or computed earlier, and that no fused loop would store only for
  // this.
  Value made_anyway(Value value) {
    std::optional<Value>& known = known_[value];
    if (!known) known = find_made_anyway(value);
    return *known;
  }
  Value find_made_anyway(Value value) const {
    for (Value v : graph_.values.ids()) {
      if (graph_.values[v].source != Source::kNode && is_alike(v, value)) return v;
    }
    for (const Node& node : graph_.nodes) {
      for (Value output : node.outputs) {
        if (output == value) return value;
        if (!node.op->has(kElementwise) && read_[output] && is_alike(output, value)) return output;
      }
    }
    return value;
  }

  const Graph& graph_;
  PerValue<int> depth_;  // nodes on the longest way to it
  PerValue<bool> read_;  // for more than types, by what is needed itself
  std::unordered_map<Value, std::optional<Value>> known_;
};

}  // namespace

Graph redirect_type_operands(Graph graph) {
  TypeSources sources(graph);
  const auto forwards = [&](const Node& node) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (sources(node, k) != node.inputs[k]) return true;
    }
    return false;
  };
  if (std::ranges::none_of(graph.nodes, forwards)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    Values inputs;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      inputs.push_back(rewrite(sources(node, k)));
    }
    rewrite.copy(node, std::move(inputs));
  }
  return rewrite.finish();
}

}  // namespace samegrad
