#include "ir/placement.h"

namespace samegrad {
namespace {

struct OperandPlacements {
  bool rows = false, partial = false, own = false;
};

OperandPlacements operands_of(const Graph& graph, const Node& node) {
  OperandPlacements found;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Placement placement = graph.placement(node.inputs[k]);
    // A draw in the shape of what each replica has of its own is each one's own.
    if (!node.op->reads(k) && !node.op->has(kRandomOp)) {
      const ValueType& type = graph.type(node.inputs[k]);
      const bool counted = type.batched() || has_counted_size(graph.symbols, type);
      found.rows |= counted && placement != Placement::kReplicated;
      continue;
    }
    found.rows |= placement == Placement::kSharded;
    found.partial |= placement == Placement::kPartial;
    found.own |= placement == Placement::kVarying;
  }
  return found;
}

// True if the size of an example differs between replicas: an n by n matrix, for instance.
bool has_own_sizes(const Graph& graph, const ValueType& type) {
  if (graph.replicas == 1) return false;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    const bool counts = type.batched() && axis == type.batch.axis;
    if (!counts && differs_between_replicas(graph.symbols, type.shape[axis])) return true;
  }
  return false;
}

// Return the placement of a result of rows of each replica: its locality alone decides.
Placement of_rows(const Node& node, const Inferred& inferred, const ValueType& type) {
  switch (node.locality) {
    case Locality::kPerExample:
    case Locality::kInnerExample:
      return type.batched() ? Placement::kSharded : Placement::kVarying;
    case Locality::kBatchReduction: {
      const bool sum =
          node.op->linearity == Linearity::kSum || node.op->linearity == Linearity::kProduct;
      return sum && inferred.linear ? Placement::kPartial : Placement::kVarying;
    }
    case Locality::kCount:
      return Placement::kPartial;
    default:
      return Placement::kVarying;
  }
}

}  // namespace

bool is_linear_in_partial(const Graph& graph, const Node& node) {
  int partial = 0;
  bool scaled = true, first = true;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!node.op->reads(k) || graph.placement(node.inputs[k]) != Placement::kPartial) continue;
    ++partial;
    scaled &= node.op->scales(k);
    first &= k == 0;
  }
  switch (node.op->linearity) {
    case Linearity::kSum:
      return scaled;
    case Linearity::kProduct:
      return scaled && partial == 1;
    case Linearity::kQuotient:
      return first;
    default:
      return false;
  }
}

Placement placement_of(const Graph& graph, const Node& node, const Inferred& inferred,
                       std::size_t result) {
  const ValueType& type = inferred.types[result];
  if (!inferred.placements.empty()) return inferred.placements[result];
  if (node.op->has(kCollective) || node.op->has(kReplicaInvariant)) return Placement::kReplicated;
  // An alias has the memory of its operand: one array where all replicas share it.
  if (node.op->has(kAliases) && !graph.varying(node.inputs[0])) return Placement::kReplicated;
  const OperandPlacements operands = operands_of(graph, node);
  const bool several = graph.replicas > 1;
  if (operands.own || (several && node.op->has(kReplicaDependent)) || has_own_sizes(graph, type)) {
    return Placement::kVarying;
  }
  if (operands.partial) {
    const bool linear = !operands.rows && inferred.linear && is_linear_in_partial(graph, node);
    return linear ? Placement::kPartial : Placement::kVarying;
  }
  if (operands.rows) return of_rows(node, inferred, type);
  return several && node.op->has(kReplicaShare) ? Placement::kPartial : Placement::kReplicated;
}

bool takes_parts(const Graph& graph, const Node& node) {
  if (node.op->has(kControl)) return false;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (node.op->reads(k) && graph.placement(node.inputs[k]) == Placement::kPartial) return true;
  }
  return false;
}

bool is_function_of_sums(const Graph& graph, Value value) {
  const Node* node = graph.producer(value);
  if (!node || graph.placement(value) != Placement::kPartial) return false;
  if (node->op->has(kAliases)) return is_function_of_sums(graph, node->inputs[0]);
  return node->op->has(Trait(kControl | kReplicaShare)) || takes_parts(graph, *node);
}

Placement joined(Placement a, Placement b) {
  if (a == b || b == Placement::kReplicated) return a;
  return a == Placement::kReplicated ? b : Placement::kVarying;
}

}  // namespace samegrad
