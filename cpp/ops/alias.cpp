// Results that have the bytes of their operand.
#include "ops/attributes.h"
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
  op.traits = kAliases | kIdentity;
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
  op.traits = kAliases | kIdentity | kNoGradient;
  op.vjp = nullptr;
  return op;
}

// An axis of ordinary rows as the axis of examples, one row each.
Inferred as_examples_rule(const InferArgs& args) {
  ValueType y = args.in[0];
  const int axis =
      normalize_axis(args.attrs.as<ExamplesAttrs>().axis, y.shape.rank(), args.op.name);
  if (y.batched()) return one_result(args, y);
  // Examples have counts, and a length is none: the program is bound to it.
  const std::int64_t dim = follows_lengths(args.symbols, y.shape[axis])
                               ? fixed_size(args, size_along(args, y, axis))
                               : y.shape[axis];
  Symbol known;
  known.kind = Symbol::Kind::kSize;
  known.size = size_of(args.symbols, dim);
  const int symbol =
      is_symbolic(dim) ? int(dim - kSymbols) : derived_symbol(args.symbols, std::move(known));
  y.batch = {axis, 1, symbol};
  y.shape[axis] = kRows;
  return {{y}, Locality::kWhole};
}

OpDef as_examples_row() {
  OpDef op = identity_row();
  op.name = "as_examples";
  op.traits = kAliases;
  op.doc = "The operand, an axis of which counts examples unless one does already.";
  op.attrs = schema_of<ExamplesAttrs>();
  op.infer = as_examples_rule;
  op.vjp = reshape_back;
  op.samples = {{.shapes = {{5, 3}}, .attrs = {}}};
  return op;
}

OpDef as_rows_row() {
  OpDef op = identity_row();
  op.name = "as_rows";
  op.traits = kAliases;
  op.doc = "The operand without an axis of examples, which becomes an ordinary one.";
  op.infer = [](const InferArgs& args) -> Inferred {
    return {{ordinary_type(args, args.in[0])}, Locality::kWhole};
  };
  op.vjp = reshape_back;
  return op;
}

// A copy: what replicas have alike need not lie in memory of each.
OpDef of_trace_row() {
  OpDef op;
  op.name = "of_trace";
  op.doc = "What the trace of a replica's count made, in a shape with sizes of each replica's own.";
  op.operands = {"x"};
  op.attrs = schema_of<OfTraceAttrs>();
  op.traits = kReplicaDependent | kNoGradient | kBackward | kAnyType;
  op.infer = [](const InferArgs& args) -> Inferred {
    ValueType type{args.in[0].dtype, {}, {}};
    for (std::int64_t size : args.attrs.as<OfTraceAttrs>().shape) type.shape.push_back(size);
    return {{type}, Locality::kWhole};
  };
  op.kernel = copy_bytes;
  op.samples = {{.shapes = {{2, 3}}, .attrs = OfTraceAttrs{.shape = {2, 3}}}};
  return op;
}

}  // namespace

std::vector<OpDef> alias_ops() {
  return {identity_row(), stop_gradient_row(), as_examples_row(), as_rows_row(), of_trace_row()};
}

}  // namespace samegrad
