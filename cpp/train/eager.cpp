#include "train/eager.h"

#include <algorithm>
#include <ranges>

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
  node.inputs = Values(inputs.size());
  const auto type_of = inputs | std::views::transform([](auto* t) -> auto& { return t->type; });
  const auto array_of = inputs | std::views::transform([](auto* t) -> auto& { return t->array; });
  const std::vector<ValueType> types(type_of.begin(), type_of.end());
  const std::vector<Array> arrays(array_of.begin(), array_of.end());
  Symbols symbols;
  const Inferred inferred = op.infer({op, types, node.attrs, symbols});
  if (!symbols.empty() || !std::ranges::all_of(inferred.types, has_numbers)) return std::nullopt;
  for (const ValueType& type : inferred.types) (void)size_in_bytes(type.dtype, type.shape);
  node.locality = inferred.locality;
  std::vector<Tensor> results;
  results.reserve(inferred.types.size());
  for (const Array& array : run_op(node, types, inferred.types, arrays, {})) {
    results.push_back(make_tensor(array));
  }
  return results;
}

}  // namespace samegrad
