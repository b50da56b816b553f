#include "plan/cost.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/reduction_order.h"
#include "base/thresholds.h"
#include "ir/op_def.h"
#include "ops/fused.h"
#include "passes/loop_costs.h"

namespace samegrad {
namespace {

// True if the run has memory for the value: it is not an argument, variable or constant.
bool is_made(const Graph& graph, Value value) {
  const Node* node = graph.producer(value);
  while (node && node->op->has(kAliases)) node = graph.producer(node->inputs[0]);
  return node != nullptr;
}

View view_without_memory(const ValueType& type, const Shape& shape) {
  return {nullptr, shape, type.dtype, type.batch.axis, type.batch.rows_per_example};
}

CostArgs call_of(const Node& node, std::span<const View> views) {
  const std::size_t inputs = node.inputs.size();
  return {node.attrs, views.first(inputs), views.subspan(inputs)};
}

// An op that moves elements reads no more of an operand than a result has: a gather passes by the
// other rows of its table.
Cost cost_of_call(const OpDef& op, const CostArgs& call) {
  Cost cost;
  cost.flops = flops_of(op, call);
  std::int64_t most = 0;
  for (const View& result : call.out) {
    most = std::max(most, result.size());
    cost.written += double(result.size()) * double(size_of(result.dtype));
  }
  for (std::size_t k = 0; k < call.in.size(); ++k) {
    const View& operand = call.in[k];
    const std::int64_t size = op.has(kAnyType) ? std::min(operand.size(), most) : operand.size();
    cost.read.push_back(op.reads(k) ? double(size) * double(size_of(operand.dtype)) : 0);
  }
  return cost;
}

template <class ShapeOf>
std::vector<View> views_with(const Graph& graph, const std::vector<Value>& values,
                             const ShapeOf& shape_of) {
  std::vector<View> views;
  for (Value value : values) {
    const ValueType& type = graph.type(value);
    views.push_back(view_without_memory(type, shape_of(type)));
  }
  return views;
}

template <class ShapeOf>
Cost cost_with(const Graph& graph, const Node& node, const ShapeOf& shape_of) {
  if (node.op->has(kAliases)) return {0, 0, std::vector<double>(node.inputs.size())};
  std::vector<View> views = views_with(graph, node.inputs, shape_of);
  std::ranges::copy(views_with(graph, node.outputs, shape_of), std::back_inserter(views));
  return cost_of_call(*node.op, call_of(node, views));
}

// The number of examples whose data has so many bytes.
std::int64_t examples_in(std::int64_t bytes, const LoopStep& loop) {
  const std::int64_t fitting = bytes / (loop.example_bytes + 1);
  return std::max(std::min(fitting, thresholds().tile_examples), kLeafExamples);
}

std::int64_t tile_of(const LoopStep& loop) {
  // With an inner loop, what passes between the nodes is big as it is.
  const std::int64_t near =
      loop.inner.empty() ? examples_in(thresholds().tile_bytes, loop) : kLeafExamples;
  if (!streams_weights(loop)) return near;
  // Beyond L2 are the weights, once per tile, or what an example writes there and reads again.
  const std::int64_t far = examples_in(thresholds().far_tile_bytes, loop);
  const auto saved = [&](std::int64_t from, std::int64_t to) {
    return double(loop.weight_bytes) / double(from) - double(loop.weight_bytes) / double(to);
  };
  if (saved(near, far) <= 2 * double(loop.example_bytes)) return near;
  // Twice the tile is twice the scratch of each thread, for ever less.
  std::int64_t tile = near;
  while (tile < far && 2 * saved(tile, 2 * tile) > double(loop.example_bytes)) tile *= 2;
  return std::min(tile, far);
}

Shape shape_of_example(const ValueType& type) {
  Shape shape = type.shape;
  if (type.batched()) shape[type.batch.axis] = type.batch.rows_per_example;
  return shape;
}

// Blocks of the state of a long contraction take memory while they are folded.
bool takes_no_memory(const Graph& graph, const Node& node) {
  const TreeKernel& tree = node.op->tree;
  if (!tree.subtree) return true;
  const std::vector<View> example = views_with(graph, node.inputs, shape_of_example);
  const ValueType& result = graph.type(node.outputs[0]);
  return tree.state(example, node.attrs, view_without_memory(result, result.shape)).subtrees;
}

}  // namespace

bool is_profitable_to_fuse(const Graph& graph, const Node& reduction) {
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < reduction.inputs.size(); ++k) {
    const Value input = reduction.inputs[k];
    if (!reduction.op->reads(k) || !is_made(graph, input)) continue;
    if (!graph.type(input).batched()) return false;  // one of each replica
    bytes += example_bytes(graph.type(input));
  }
  const std::int64_t sum = example_bytes(graph.type(reduction.outputs[0]));
  return sum > bytes * thresholds().joined_examples && takes_no_memory(graph, reduction);
}

std::int64_t bytes_per_call(const Graph& graph, const Node& node) {
  if (node.locality != Locality::kBatchReduction) return weight_bytes(graph, node);
  return example_bytes(graph.type(node.outputs[0]));
}

bool streams_weights(const LoopStep& loop) {
  return loop.weight_bytes > thresholds().loop_weight_bytes;
}

namespace {

void choose_tile(const PlanDraft& plan, LoopStep& loop) {
  std::vector<Value> roots;
  for (NodeId n : loop.nodes) {
    const Node& node = plan.graph.nodes[n];
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.op->reads(k)) roots.push_back(plan.root[node.inputs[k]]);
    }
    for (Value output : node.outputs) roots.push_back(plan.root[output]);
    loop.weight_bytes += weight_bytes(plan.graph, node);
  }
  std::ranges::sort(roots);
  roots.erase(std::ranges::unique(roots).begin(), roots.end());
  for (Value root : roots) {
    if (plan.storage[root] != Storage::kTile) continue;
    loop.example_bytes += example_bytes(plan.graph.type(root));
  }
  loop.tile_examples = tile_of(loop);
}

}  // namespace

void choose_tiles(PlanDraft& plan) {
  for (PlanStep& step : plan.steps) {
    if (auto* loop = step.get_if<LoopStep>()) choose_tile(plan, *loop);
  }
}

double Cost::bytes() const {
  return std::accumulate(read.begin(), read.end(), written);
}

Cost cost_of(const Graph& graph, const Node& node, const std::vector<std::int64_t>& counts) {
  return cost_with(graph, node,
                   [&](const ValueType& type) { return shape_or_empty(type, counts); });
}

std::int64_t named_rows(const Graph& graph, const Node& tree,
                        const std::vector<std::int64_t>& counts) {
  return tree.op->rows.places(views_with(
      graph, tree.inputs, [&](const ValueType& type) { return shape_or_empty(type, counts); }));
}

// A product makes two multiply-adds of whole vectors in a cycle; a step of an elementwise loop
// makes one operation, and three accesses to L1, in about two.
double rate_of(const OpDef& op, const Attrs& attrs) {
  return op.has(kElementwise) || attrs.get_if<FusedAttrs>() ? 1.0 / 8 : 1;
}

bool should_parallelize(const OpDef& op, const CostArgs& call) {
  std::int64_t bytes = 0;
  for (const auto& views : {call.in, call.out}) {
    for (const View& view : views) bytes += view.size() * std::int64_t(size_of(view.dtype));
  }
  return bytes > thresholds().parallel_operation_bytes ||
         flops_of(op, call) / rate_of(op, call.attrs) > double(thresholds().parallel_product_work);
}

namespace {

// The views of a call whose shapes are known without counts of examples; none of another.
std::vector<View> known_views(const Graph& graph, const Node& node) {
  std::vector<View> views;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (Value value : *values) {
      const ValueType& type = graph.type(value);
      if (type.batched() || type.shape.symbolic()) return {};
      views.push_back(view_without_memory(type, type.shape));
    }
  }
  return views;
}

}  // namespace

bool is_shared(const Graph& graph, const Node& node) {
  if (!node.op->parts.run) return false;
  const std::vector<View> views = known_views(graph, node);
  if (views.empty()) return false;
  const CostArgs call = call_of(node, views);
  return should_parallelize(*node.op, call) && node.op->parts.count(call) > 1;
}

bool has_bounded_scratch(const Graph& graph, const Node& node) {
  if (!node.op->scratch_bytes || node.locality == Locality::kBatchReduction) return false;
  if (node.op->has(Trait(kSideEffect | kControl | kCollective))) return false;
  const auto varies = [&](Value value) { return graph.varying(value); };
  if (std::ranges::any_of(node.inputs, varies)) return false;
  if (std::ranges::any_of(node.outputs, varies)) return false;
  const std::vector<View> views = known_views(graph, node);
  if (views.empty()) return false;
  const CostArgs call = call_of(node, views);
  const ParallelPartition& parts = node.op->parts;
  const std::size_t left = parts.state_bytes ? parts.state_bytes(call) : 0;
  const std::size_t scratch = node.op->scratch_bytes(call);
  constexpr std::size_t kMost = Scratch::kBlockBytes - 2 * kAlignment;
  return scratch <= kMost && left <= kMost - scratch;
}

double work_of_example(const Graph& graph, const Node& node) {
  double elements = 0;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (Value value : *values) elements += double(example_size(graph.type(value)));
  }
  return elements + (node.op->flops ? cost_with(graph, node, shape_of_example).flops / 2 : 0);
}

}  // namespace samegrad
