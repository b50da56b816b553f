#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/float_environment.h"
#include "base/thresholds.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

bool is_pure(const OpDef& op) {
  constexpr std::uint32_t kContext =
      kRandomOp | kCollective | kReplicaDependent | kReplicaInvariant | kSideEffect | kReplicaShare;
  return op.kernel && (op.traits & kContext) == 0;  // control flow has no kernel
}

// `operands` is the new graph, in which earlier nodes may have become constants.
bool can_fold(const Graph& operands, const Values& inputs, const Graph& results, const Node& node) {
  if (!is_pure(*node.op)) return false;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const ValueInfo& info = operands.values[inputs[k]];
    const bool read = node.op->reads(k);
    if (info.type.batched() || info.type.shape.symbolic() ||
        (read && info.source != Source::kConstant))
      return false;
  }
  for (Value output : node.outputs) {
    const ValueType& type = results.type(output);
    // Large results are cheaper to make than to keep.
    if (type.batched() || type.shape.symbolic()) return false;
    if (type.shape.size() > thresholds().folded_elements) return false;
  }
  return true;
}

View view_of(const Array& array) {
  return {array.raw(), array.shape(), array.dtype()};
}

// None where the kernel raises: the node may be in a branch that is never taken, and where it is,
// the step raises.
std::optional<std::vector<Array>> evaluate(const Graph& operands, const Values& inputs,
                                           const Graph& results, const Node& node) {
  std::vector<View> in, out;
  std::vector<Array> arrays;
  for (Value input : inputs) {
    const ValueInfo& info = operands.values[input];
    if (info.source == Source::kConstant) {
      in.push_back(view_of(operands.constants[info.constant()]));
    } else {
      in.push_back({nullptr, info.type.shape, info.type.dtype});
    }
  }
  for (Value output : node.outputs) {
    const ValueType& type = results.type(output);
    arrays.emplace_back(type.dtype, type.shape);
    out.push_back(view_of(arrays.back()));
  }
  static const ReplicaContext kContext;
  Scratch scratch;
  const FloatEnvironment environment;  // as the step's own threads have it
  try {
    node.op->kernel({.attrs = node.attrs,
                     .in = in,
                     .out = out,
                     .replica_context = kContext,
                     .scratch = scratch});
  } catch (const Error&) {
    return std::nullopt;
  }
  return arrays;
}

}  // namespace

Graph fold_constants(Graph graph) {
  const auto folds = [&](const Node& node) { return can_fold(graph, node.inputs, graph, node); };
  if (std::ranges::none_of(graph.nodes, folds)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    const Values inputs = rewrite(node.inputs);
    std::optional<std::vector<Array>> arrays;
    if (can_fold(rewrite.to(), inputs, graph, node)) {
      arrays = evaluate(rewrite.to(), inputs, graph, node);
    }
    if (!arrays) {
      rewrite.copy(node);
      continue;
    }
    for (std::size_t i = 0; i < arrays->size(); ++i) {
      rewrite.replace(node.outputs[i], rewrite.to().add_constant((*arrays)[i]));
    }
  }
  return rewrite.finish();
}

}  // namespace samegrad
