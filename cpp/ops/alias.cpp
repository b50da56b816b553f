// Results that have the bytes of their operand.
#include <cstring>

#include "ops/expr.h"
#include "ops/families.h"
#include "ops/reduce_kernel.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

void copy_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const std::size_t bytes = std::size_t(x.size()) * size_of(x.dtype);
  if (bytes && x.data != args.out[0].data) std::memcpy(args.out[0].data, x.data, bytes);
}

OpDef identity_row() {
  OpDef op;
  op.name = "identity";
  op.doc = "The operand itself.";
  op.operands = {"x"};
  op.traits = kAliases;
  op.infer = same_as_input;
  op.kernel = copy_kernel;
  op.vjp = [](const VjpArgs& args) -> Values { return {args.ct[0]}; };
  op.samples = {{.shapes = {{2, 3}}, .attrs = {}}, {.shapes = {{5}}, .attrs = {}, .batched = {1}}};
  return op;
}

OpDef stop_gradient_row() {
  OpDef op = identity_row();
  op.name = "stop_gradient";
  op.doc = "The operand itself; gradients do not flow through it.";
  op.traits = kAliases | kNoGradient;
  op.vjp = nullptr;
  return op;
}

Inferred expand_dims_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  const auto& axes = args.attrs.integers("axes");
  const int rank = x.shape.rank() + int(axes.size());
  check_value(rank <= kMaxRank, args.op.name, "at most ", kMaxRank, " axes are supported: got ",
              rank, "; merge axes with reshape.");
  const std::uint32_t added = axes_mask(args.op.name, axes, rank);
  ValueType y{x.dtype, {}, {}};
  for (int axis = 0, old = 0; axis < rank; ++axis) {
    if (added >> axis & 1u) {
      y.shape.push_back(1);
      continue;
    }
    if (old == x.batch.axis) {
      y.batch = x.batch;
      y.batch.axis = axis;
    }
    y.shape.push_back(x.shape[old++]);
  }
  return one_result(args, y);
}

OpDef expand_dims_row() {
  OpDef op;
  op.name = "expand_dims";
  op.doc = "The operand with axes of size 1 added.";
  op.operands = {"x"};
  op.attrs = {{"axes", AttrKind::kIntegers, "Where the new axes are in the result."}};
  op.traits = kAliases;
  op.infer = expand_dims_rule;
  op.kernel = copy_kernel;
  op.vjp = [](const VjpArgs& args) {
    return cotangents(call("reshape_like", Expr(args.b, args.ct[0]), Expr(args.b, args.in[0])));
  };
  using Axes = std::vector<std::int64_t>;
  op.samples = {{.shapes = {{2, 3}}, .attrs = {{"axes", Axes{0, 2}}}},
                {.shapes = {{5, 7}}, .attrs = {{"axes", Axes{-1}}}, .batched = {1}}};
  return op;
}

}  // namespace

std::vector<OpDef> alias_ops() {
  return {identity_row(), stop_gradient_row(), expand_dims_row()};
}

}  // namespace samegrad
