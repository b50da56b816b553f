#include "train/eager.h"

#include <algorithm>

#include "runtime/executor.h"
#include "tensor/non_addressable.h"

namespace samegrad {
namespace {

constexpr std::uint32_t kNeedTrace = kCollective | kRandomOp | kReplicaDependent | kSideEffect |
                                     kControl | kStacksResiduals | kGradientRule | kReplicaShare;

bool is_plain(const Tensor* tensor) {
  return !tensor->symbolic() && !tensor->type.batched() && !is_non_addressable(tensor->array);
}

bool has_numbers(const ValueType& type) {
  return !type.batched() && !type.shape.symbolic();
}

}  // namespace

std::optional<std::vector<Tensor>> dispatch_eager(const Host& host, const OpDef& op,
                                                  std::span<const Tensor* const> inputs,
                                                  const Attrs& attrs) {
  if ((op.traits & kNeedTrace) != 0 || !op.regions.empty()) return std::nullopt;
  if (host.check_numerics) return std::nullopt;
  if (!op.kernel && !op.has(kAliases)) return std::nullopt;
  if (!std::ranges::all_of(inputs, is_plain)) return std::nullopt;
  check_arity(op, inputs.size());
  Node node;
  node.op = &op;
  node.attrs = complete_attrs(op, attrs);
  node.inputs.resize(inputs.size());
  std::vector<ValueType> types;
  std::vector<Array> arrays;
  types.reserve(inputs.size());
  arrays.reserve(inputs.size());
  for (const Tensor* input : inputs) {
    types.push_back(input->type);
    arrays.push_back(input->array);
  }
  Symbols symbols;
  const Inferred inferred = op.infer({op, types, node.attrs, symbols});
  if (!symbols.empty() || !std::ranges::all_of(inferred.types, has_numbers)) return std::nullopt;
  for (const ValueType& type : inferred.types) (void)size_in_bytes(type.dtype, type.shape);
  node.locality = inferred.locality;
  std::vector<Tensor> results;
  for (const Array& array : run_op(node, types, inferred.types, arrays, {})) {
    results.push_back(make_tensor(array));
  }
  return results;
}

}  // namespace samegrad
