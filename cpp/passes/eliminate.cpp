#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/regions.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {

Graph propagate_copies(Graph graph) {
  if (!contains(graph, kIdentity)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    if (!node.op->has(kIdentity)) {
      rewrite.copy(node);
    } else {
      rewrite.replace(node.outputs[0], rewrite(node.inputs[0]));
    }
  }
  return rewrite.finish();
}

Graph without_gradient_rules(Graph graph) {
  if (!contains(graph, kGradientRule)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    if (node.op->has(kGradientRule)) continue;
    Node plain = node;
    change_regions(plain, [](Graph& region) { region = without_gradient_rules(region); });
    rewrite.copy(plain);
  }
  return rewrite.finish();
}

Graph eliminate_dead(Graph graph) {
  PerValue<bool> needed(graph.values.size(), false);
  for (Value output : graph.outputs) needed[output] = true;
  for (const StateWrite& write : graph.writes) needed[write.value] = true;
  PerNode<bool> kept(graph.nodes.size(), false);
  for (NodeId i : graph.nodes.ids().reversed()) {
    const Node& node = graph.nodes[i];
    bool keep = holds(node, kSideEffect);
    for (Value output : node.outputs) keep = keep || needed[output];
    kept[i] = keep;
    if (!keep) continue;
    for (Value input : node.inputs) needed[input] = true;
  }
  Rewriter rewrite(graph, needed);
  for (NodeId i : graph.nodes.ids()) {
    if (kept[i]) rewrite.copy(graph.nodes[i]);
  }
  return rewrite.finish();
}

namespace {

// Equal calls, equal results: the op, its attributes, bit by bit, its regions and its operands.
struct NodeKey {
  const Node* node;
  Values inputs;
  bool operator==(const NodeKey& other) const {
    return node->op == other.node->op && inputs == other.inputs &&
           node->attrs == other.node->attrs && node->regions == other.node->regions;
  }
};
struct NodeKeyHash {
  std::size_t operator()(const NodeKey& call) const {
    std::size_t hash = std::hash<const OpDef*>()(call.node->op) ^ call.node->attrs.hash();
    for (Value input : call.inputs) hash = hash * 1099511628211u + input.index();
    return hash;
  }
};

std::string bytes_of(const Array& array) {
  return {reinterpret_cast<const char*>(array.raw()), array.bytes()};
}

// Constants of one element are compared by type and value, so that equal numbers are one.
void merge_constants(Rewriter& rewrite) {
  std::multimap<std::string, Value> seen;  // by their bytes
  const Graph& from = rewrite.from();
  for (Value v : from.values.ids()) {
    const ValueInfo& info = from.values[v];
    if (info.source != Source::kConstant) continue;
    const Array& array = from.constants[info.constant()];
    if (array.size() != 1) continue;
    const auto [first, last] = seen.equal_range(bytes_of(array));
    const auto same = std::find_if(
        first, last, [&](const auto& other) { return from.type(other.second) == info.type; });
    if (same == last) {
      seen.emplace(bytes_of(array), v);
    } else {
      rewrite.replace(v, rewrite(same->second));
    }
  }
}

}  // namespace

Graph eliminate_common(Graph graph) {
  Rewriter rewrite(graph);
  merge_constants(rewrite);
  std::unordered_map<NodeKey, const Node*, NodeKeyHash> seen;
  seen.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    if (holds(node, kRandomOp | kSideEffect)) {
      rewrite.copy(node);
      continue;
    }
    const auto [at, fresh] = seen.try_emplace({&node, rewrite(node.inputs)}, &node);
    if (fresh) {
      rewrite.copy(node, at->first.inputs);
      continue;
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      rewrite.replace(node.outputs[i], rewrite(at->second->outputs[i]));
    }
  }
  return rewrite.finish();
}

}  // namespace samegrad
