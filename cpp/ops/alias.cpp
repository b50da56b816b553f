// Results that have the bytes of their operand.
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

OpDef identity_row() {
  OpDef op;
  op.name = "identity";
  op.doc = "The operand itself.";
  op.operands = {"x"};
  op.scaling = Scaling::kSum;
  op.traits = kAliases;
  op.infer = same_as_input;
  op.kernel = copy_bytes;
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

}  // namespace

std::vector<OpDef> alias_ops() {
  return {identity_row(), stop_gradient_row()};
}

}  // namespace samegrad
