#include "passes/iteration_space.h"

#include <algorithm>

#include "base/thresholds.h"
#include "ops/attributes.h"
#include "ops/reduce_kernel.h"

namespace samegrad {
namespace {

// The last axes make rows of one length, which is not too long for a cache.
bool makes_rows(const IterationSpace& space) {
  const int kept = space.shape.rank() - space.axes;
  if (space.axes <= 0 || kept < 0 || space.batch.axis >= kept) return false;
  for (int axis = kept; axis < space.shape.rank(); ++axis) {
    if (space.shape[axis] < 0) return false;
  }
  return columns_of(space) <= thresholds().fused_row;
}

std::optional<IterationSpace> rows_of(const ValueType& type, int axes) {
  const IterationSpace space{type.shape, type.batch, axes};
  return makes_rows(space) ? std::optional(space) : std::nullopt;
}

// The number of reduced axes if they are the last ones; 0 otherwise.
int reduced_axes(const Graph& graph, const Node& node) {
  const int rank = graph.type(node.inputs[0]).shape.rank();
  const std::uint32_t mask = axes_mask("reduce", node.attrs.as<ReduceAttrs>().axes, rank);
  for (int axes = 1; axes <= rank; ++axes) {
    if (mask == ((1u << axes) - 1) << (rank - axes)) return axes;
  }
  return 0;
}

// The number of last axes in the rows that a reduction iterates over.
int axes_of_reduction(const Graph& graph, const Node& node) {
  if (const int axes = reduced_axes(graph, node)) return axes;
  const bool keeps = node.attrs.as<ReduceAttrs>().keepdims;
  return keeps ? kept_axes(graph.type(node.inputs[0]), node) : 0;
}

// x has 1 where rows have their axes, and all else as they.
bool has_one_per_row(const ValueType& x, const ValueType& type, int axes) {
  if (x.shape.rank() != type.shape.rank() || x.batch != type.batch) return false;
  const int kept = type.shape.rank() - axes;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    if (x.shape[axis] != (axis < kept ? type.shape[axis] : 1)) return false;
  }
  return true;
}

// x is one row, for all.
bool is_one_row(const ValueType& x, const ValueType& type, int axes) {
  if (x.batched() || x.shape.rank() > type.shape.rank()) return false;
  for (int back = 1; back <= std::max(axes, x.shape.rank()); ++back) {
    const std::int64_t own = back <= x.shape.rank() ? x.shape[x.shape.rank() - back] : 1;
    if (own != (back <= axes ? type.shape[type.shape.rank() - back] : 1)) return false;
  }
  return true;
}

// The number of last axes in the rows along which x is broadcast; 0: it is broadcast differently.
int repeated_axes(const ValueType& x, const ValueType& type) {
  for (int axes = 1; axes <= type.shape.rank(); ++axes) {
    if (has_one_per_row(x, type, axes) || is_one_row(x, type, axes)) return axes;
  }
  return 0;
}

bool is_full(const ValueType& own, const Shape& shape, const ExampleAxis& batch) {
  return own.shape == shape && own.batch == batch;
}

std::optional<IterationSpace> space_of_elements(const Graph& graph, const PerValue<bool>& splat,
                                                const Node& node) {
  const ValueType& type = graph.type(node.outputs[0]);
  int axes = 0;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Value input = node.inputs[k];
    const ValueType& own = graph.type(input);
    if (!node.op->reads(k) || splat[input]) continue;
    if (is_full(own, type.shape, type.batch) || is_scalar(graph, input)) continue;
    const int found = repeated_axes(own, type);
    if (found == 0 || (axes > 0 && axes != found)) return std::nullopt;
    axes = found;
  }
  return axes > 0 ? rows_of(type, axes) : IterationSpace{type.shape, type.batch, 0};
}

}  // namespace

std::int64_t columns_of(const IterationSpace& space) {
  return space.shape.size(space.shape.rank() - space.axes, space.shape.rank());
}

bool is_scalar(const Graph& graph, Value value) {
  const ValueType& type = graph.type(value);
  return !type.batched() && !type.shape.symbolic() && type.shape.size() == 1;
}

std::optional<IterationSpace> space_of(const Graph& graph, const PerValue<bool>& splat,
                                       const Node& node) {
  switch (node.op->block.kind) {
    case BlockFn::kNone:
      return std::nullopt;
    case BlockFn::kReduce: {
      const bool over_examples = node.locality == Locality::kBatchReduction;
      return over_examples ? std::nullopt
                           : rows_of(graph.type(node.inputs[0]), axes_of_reduction(graph, node));
    }
    case BlockFn::kSoftmax:
      return rows_of(graph.type(node.inputs[0]), 1);
    case BlockFn::kOneHot:
      return rows_of(graph.type(node.outputs[0]), 1);
    case BlockFn::kRepeat: {
      const auto space = space_of_elements(graph, splat, node);
      return space && space->axes > 0 ? space : std::nullopt;
    }
    default:
      return space_of_elements(graph, splat, node);
  }
}

std::optional<IterationSpace> joined(const IterationSpace& a, const IterationSpace& b) {
  if (a.axes == 0 && b.axes > 0) return joined(b, a);
  if (is_full({DType::kFloat32, a.shape, a.batch}, b.shape, b.batch)) {
    return b.axes == 0 || a.axes == b.axes ? std::optional(a) : std::nullopt;
  }
  const bool one_per_row =
      b.axes == 0 && broadcast_of_result(a, {DType::kFloat32, b.shape, b.batch}).has_value();
  return one_per_row ? std::optional(a) : std::nullopt;
}

std::optional<BroadcastKind> broadcast_of_result(const IterationSpace& space,
                                                 const ValueType& type) {
  if (is_full(type, space.shape, space.batch)) return BroadcastKind::kFull;
  if (space.axes == 0) return std::nullopt;
  const ValueType full{type.dtype, space.shape, space.batch};
  if (has_one_per_row(type, full, space.axes)) return BroadcastKind::kReduced;
  const int kept = space.shape.rank() - space.axes;
  const bool dropped = type.batch == space.batch && type.shape.rank() == kept &&
                       std::equal(type.shape.begin(), type.shape.end(), space.shape.begin());
  return dropped ? std::optional(BroadcastKind::kReducedDropped) : std::nullopt;
}

std::optional<BroadcastKind> broadcast_of_node(const Graph& graph, const IterationSpace& space,
                                               const Node& node) {
  const bool reduces = node.op->block.kind == BlockFn::kReduce;
  const int kept = reduces ? kept_axes(graph.type(node.inputs[0]), node) : 0;
  if (kept == 0) return broadcast_of_result(space, graph.type(node.outputs[0]));
  return kept == space.axes ? std::optional(BroadcastKind::kPerExample) : std::nullopt;
}

int kept_axes(const ValueType& x, const Node& reduction) {
  const int rank = x.shape.rank();
  if (!x.batched() || x.batch.axis != 0 || x.batch.rows_per_example != 1) return 0;
  const std::uint32_t mask =
      axes_mask("reduce", reduction.attrs.as<ReduceAttrs>().axes, rank) & ~1u;
  std::int64_t rows = 1;
  int kept = rank - 1;
  for (int axis = 1; axis < rank && (mask >> axis & 1u); ++axis, --kept) {
    if (x.shape[axis] < 0) return 0;
    rows *= x.shape[axis];
  }
  const bool others = mask >> (rank - kept) != 0;
  return others || rows < 2 ? 0 : kept;
}

std::optional<BroadcastKind> broadcast_of_operand(const Graph& graph, const PerValue<bool>& splat,
                                                  const IterationSpace& space, const Node& node,
                                                  std::size_t k) {
  const ValueType& own = graph.type(node.inputs[k]);
  const ValueType& type = graph.type(node.outputs[0]);
  const bool whole = node.op->block.kind == BlockFn::kReduce;
  if (whole || node.op->block.kind == BlockFn::kSoftmax) {
    return is_full(own, space.shape, space.batch) ? std::optional(BroadcastKind::kFull)
                                                  : std::nullopt;
  }
  if (node.op->block.kind == BlockFn::kOneHot) {
    const auto role = broadcast_of_result(space, own);
    return role == BroadcastKind::kReducedDropped && is_full(type, space.shape, space.batch)
               ? role
               : std::nullopt;
  }
  if (splat[node.inputs[k]]) return BroadcastKind::kScalar;
  if (is_full(own, type.shape, type.batch)) return broadcast_of_result(space, type);
  if (is_scalar(graph, node.inputs[k])) return BroadcastKind::kScalar;
  if (!is_full(type, space.shape, space.batch) || space.axes == 0) return std::nullopt;
  if (has_one_per_row(own, type, space.axes)) return BroadcastKind::kReduced;
  return is_one_row(own, type, space.axes) ? std::optional(BroadcastKind::kInner) : std::nullopt;
}

}  // namespace samegrad
