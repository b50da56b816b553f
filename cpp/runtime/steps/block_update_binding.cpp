// Bindings of a blockwise update: its reductions and scratch.
#include <algorithm>
#include <numeric>

#include "base/thresholds.h"
#include "ops/tree_reduction.h"
#include "runtime/steps/block_update.h"
#include "runtime/tree.h"

namespace samegrad {
namespace {

constexpr std::int64_t kGivenGrain = 64;  // elements

// The state of values given to the replicas: nothing to fold, only blocks of the result.
AccumulatorShape given_state(std::span<const View>, const Attrs&, const View& result) {
  AccumulatorShape state = state_of_result(result);
  state.column_grain = kGivenGrain;
  state.block_bytes = thresholds().fused_piece * state.element_bytes();
  return state;
}

const TreeKernel& given_values() {
  static const TreeKernel kernel{.state = given_state};
  return kernel;
}

std::vector<View> views_of_example(const Graph& graph, const Node& node) {
  std::vector<View> views;
  for (Value value : node.inputs) views.push_back(view_of_example(graph.type(value)));
  return views;
}

TreeReduction reduction_of(const Graph& graph, const ExampleSum& sum) {
  const View result = view_of_example(graph.type(sum.result));
  if (!sum.tree.exists()) {
    return {given_values(), graph.nodes[sum.all_reduce].attrs, {}, result};
  }
  const Node& node = graph.nodes[sum.tree];
  return {node.op->tree, node.attrs, views_of_example(graph, node), result};
}

// Scratch for a block of one of the sums, besides the states of the replicas.
std::size_t block_bytes(const Graph& graph, const Node& node, const TreeReduction& reduction,
                        const Rect& block, std::int64_t examples) {
  if (node.op->tree.fold_bytes) {
    const std::vector<View> in = views_of_example(graph, node);
    const View result = view_of_example(graph.type(node.outputs[0]));
    return node.op->tree.fold_bytes({in, node.attrs, result, block, examples});
  }
  const TileSet extent(reduction.state, block);
  return std::size_t(TreeAccumulator::partial_bytes(reduction, extent, examples) + extent.bytes);
}

// Operands may have to be turned, and packed.
std::size_t open_bytes(const Node& node, const NodeBinding& of) {
  std::size_t bytes = 0;
  for (const std::vector<View>& views : of.views) {
    bytes += Scratch::kBlockBytes / 64;
    for (const View& view : std::span(views).first(node.inputs.size())) {
      bytes += 2 * std::size_t(aligned(view.size() * std::int64_t(size_of(view.dtype))));
    }
  }
  return bytes;
}

}  // namespace

UpdateBinding bind_step(const BlockUpdateStep& step, const StepToBind& to_bind) {
  const auto& [plan, _, context] = to_bind;
  UpdateBinding binding;
  std::size_t most = 0;
  for (const ExampleSum& sum : step.sums) {
    const NodeBinding* of = sum.tree.exists() ? &context.node(sum.tree) : nullptr;
    const std::size_t replicas = of ? of->views.size() : std::size_t(context.replicas());
    const DType dtype = plan.graph.type(sum.result).dtype;
    binding.sums.push_back({reduction_of(plan.graph, sum),
                            Array::number(dtype, double(context.replicas_of_world())),
                            {},
                            of && of->joint,
                            of ? of->symbol : -1});
    binding.sums.back().parts.reserve(replicas);
    const TreeReduction& reduction = binding.sums.back().reduction;
    if (of) binding.scratch.open += open_bytes(plan.graph.nodes[sum.tree], *of);
    if (reduction.whole.cuts() == 0) continue;
    const Rect block = binding.sums[0].reduction.blocks(1).cut(0);
    const std::int64_t state = TileSet(reduction.state, block).bytes;
    const auto levels = std::size_t(kReplicaTree.levels(std::int64_t(replicas)) * state);
    if (!of) {
      binding.scratch.task += std::size_t(state);
      most = std::max(most, levels);
      continue;
    }
    binding.scratch.task += levels;
    const std::int64_t examples = std::accumulate(of->examples.begin(), of->examples.end(), 0l);
    const Node& node = plan.graph.nodes[sum.tree];
    most = std::max(most, block_bytes(plan.graph, node, reduction, block, examples));
  }
  binding.scratch.task += most + Scratch::kBlockBytes;  // the update's kernel takes small pieces
  return binding;
}

}  // namespace samegrad
