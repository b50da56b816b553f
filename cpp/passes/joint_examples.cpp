#include "passes/joint_examples.h"

#include <algorithm>

#include "ir/op_def.h"
#include "ir/symbols.h"
#include "ops/attributes.h"
#include "passes/loop_scheduling.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

// An all-reduce that sums over the replicas (a mean is such a sum, divided afterwards), or one of
// which each replica gets its part.
bool sums_over_replicas(const Node& node) {
  if (!node.op->has(kCollective)) return false;
  return node.attrs.get_if<AllReduceAttrs>() || node.op->linearity == Linearity::kSum;
}

// Readers of a value or of an alias of it.
struct Readers {
  bool all_reduces = false, others = false;
};

PerValue<Readers> readers_of(const Graph& graph) {
  PerValue<Readers> readers(graph.values.size());
  for (Value output : graph.outputs) readers[output].others = true;
  for (const StateWrite& write : graph.writes) readers[write.value].others = true;
  for (NodeId n : graph.nodes.ids().reversed()) {
    const Node& node = graph.nodes[n];
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      Readers& of = readers[node.inputs[k]];
      if (node.op->has(kAliases)) {
        of.all_reduces |= readers[node.outputs[0]].all_reduces;
        of.others |= readers[node.outputs[0]].others;
      } else if (sums_over_replicas(node)) {
        of.all_reduces = true;
      } else if (node.op->reads(k)) {
        of.others = true;
      }
    }
  }
  return readers;
}

// True if the operands are the same on all replicas, or rows of the global batch.
bool reads_rows(const Graph& graph, const Node& node) {
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!node.op->reads(k) && !node.op->has(kRandomOp)) continue;
    const Placement placement = graph.placement(node.inputs[k]);
    if (placement == Placement::kReplicated) {
      if (graph.type(node.inputs[k]).batched()) return false;  // all rows, on each replica
      continue;
    }
    const ValueType& type = graph.type(node.inputs[k]);
    if (placement != Placement::kSharded || !type.batched()) return false;
  }
  return true;
}

bool is_joint(const Graph& graph, const Node& node, const PerValue<Readers>& readers) {
  if (!has_tiles(node.locality) || holds(node, kSideEffect)) return false;
  const int symbol = symbol_of_examples(graph, node);
  if (symbol < 0 || joins_replicas(graph.symbols, std::size_t(symbol))) return false;
  if (!reads_rows(graph, node)) return false;
  if (node.locality == Locality::kPerExample) {
    return std::ranges::all_of(node.outputs, [&](Value output) {
      return graph.placement(output) == Placement::kSharded && graph.type(output).batched();
    });
  }
  return std::ranges::all_of(node.outputs, [&](Value output) {
    return graph.placement(output) == Placement::kPartial && readers[output].all_reduces;
  });
}

}  // namespace

PerNode<bool> joint_nodes(const Graph& graph) {
  PerNode<bool> joint(graph.nodes.size(), false);
  if (graph.replicas == 1) return joint;
  const PerValue<Readers> readers = readers_of(graph);
  for (NodeId n : graph.nodes.ids()) joint[n] = is_joint(graph, graph.nodes[n], readers);
  return joint;
}

PerValue<bool> joint_sums(const Graph& graph, const PerNode<bool>& joint) {
  PerValue<bool> sums(graph.values.size(), false);
  for (NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    const bool sum = node.op->has(kAliases)
                         ? sums[node.inputs[0]]
                         : joint[n] && node.locality == Locality::kBatchReduction;
    for (Value output : node.outputs) sums[output] = sum;
  }
  return sums;
}

Graph separate_partials(Graph graph) {
  const PerNode<bool> joint = joint_nodes(graph);
  const PerValue<bool> sums = joint_sums(graph, joint);
  const PerValue<Readers> readers = readers_of(graph);
  const auto is_mixed = [&](Value value) { return sums[value] && readers[value].others; };
  if (std::ranges::none_of(graph.values.ids(), is_mixed)) return graph;
  Rewriter rewrite(graph);
  PerValue<Value> own(graph.values.size(), kNoValue);  // what the others read
  for (const Node& node : graph.nodes) {
    Values shared = rewrite(node.inputs), others;
    for (Value input : node.inputs) {
      others.push_back(own[input] == kNoValue ? rewrite(input) : own[input]);
    }
    if (node.outputs.empty() || !is_mixed(node.outputs[0])) {
      rewrite.copy(node,
                   sums_over_replicas(node) || (node.op->has(kAliases) && sums[node.outputs[0]])
                       ? shared
                       : others);
      continue;
    }
    rewrite.copy(node, others);
    for (Value output : node.outputs) own[output] = rewrite(output);
    rewrite.copy(node, shared);
  }
  Graph made = rewrite.finish();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    if (own[graph.outputs[i]] != kNoValue) made.outputs[i] = own[graph.outputs[i]];
  }
  for (std::size_t w = 0; w < graph.writes.size(); ++w) {
    if (own[graph.writes[w].value] != kNoValue) made.writes[w].value = own[graph.writes[w].value];
  }
  return made;
}

}  // namespace samegrad
