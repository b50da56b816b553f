// Results that have the bytes of their operand.
#include "ops/as_type.h"
#include "ops/attributes.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

OpDef identity_op() {
  OpDef op;
  op.name = "identity";
  op.doc = "The operand itself.";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.traits = kAliases | kIdentity;
  op.infer = same_as_input;
  op.kernel = copy_bytes;
  op.vjp = [](const VjpArgs& args) -> Values { return {args.ct[0]}; };
  op.samples = {{.shapes = {{2, 3}}, .attrs = {}}, {.shapes = {{5}}, .attrs = {}, .batched = {1}}};
  return op;
}

OpDef stop_gradient_op() {
  OpDef op = identity_op();
  op.name = "stop_gradient";
  op.doc = "The operand itself; gradients do not flow through it.";
  op.traits = kAliases | kIdentity | kNoGradient;
  op.vjp = nullptr;
  return op;
}

// An ordinary axis as the axis of examples: one row each, or those of a count that is given.
Inferred as_examples_rule(const InferArgs& args) {
  ValueType y = args.in[0];
  const auto& attrs = args.attrs.as<ExamplesAttrs>();
  const int axis = normalize_axis(attrs.axis, y.shape.rank(), args.op.name);
  if (y.batched()) return one_result(args, y);
  const Size size = size_along(args, y, axis);
  if (attrs.count != -1) {
    y.batch = {axis, attrs.rows, count_symbol(args.symbols, attrs.count)};
    SG_CHECK_VALUE(same_size(args, size, size_along(args, y, axis)), args.op.name,
                   "the axis must have the rows of all examples: got ", args.shape_of(0), ".");
  } else {
    // The example axis must have a count of examples, not a length: a length is bound to its value.
    const bool length = follows_lengths(args.symbols, y.shape[axis]);
    const std::int64_t dim = length ? fixed_size(args, size) : y.shape[axis];
    y.batch = {axis, 1, count_symbol(args.symbols, dim)};
  }
  y.shape[axis] = kBatchDim;
  return {{y}, Locality::kFullBatch};
}

OpDef as_examples_op() {
  OpDef op = identity_op();
  op.name = "as_examples";
  op.traits = kAliases;
  op.doc = "The operand, an axis of which counts examples unless one does already.";
  op.attrs = schema_of<ExamplesAttrs>();
  op.infer = as_examples_rule;
  op.vjp = reshape_back;
  op.samples = {{.shapes = {{5, 3}}, .attrs = {}}};
  return op;
}

OpDef as_rows_op() {
  OpDef op = identity_op();
  op.name = "as_rows";
  op.traits = kAliases;
  op.doc = "The operand without an axis of examples, which becomes an ordinary one.";
  op.infer = [](const InferArgs& args) -> Inferred {
    return {{ordinary_type(args, args.in[0])}, Locality::kFullBatch};
  };
  op.vjp = reshape_back;
  return op;
}

// A copy: what replicas have alike need not be in memory of each.
OpDef of_trace_op() {
  OpDef op;
  op.name = "of_trace";
  op.version = OpDef::kOfPasses;
  op.doc = "What the trace of a replica's count made, in a shape with sizes of each replica's own.";
  op.operands = {"x"};
  op.attrs = schema_of<OfTraceAttrs>();
  op.traits = kReplicaDependent | kNoGradient | kBackward | kAnyType;
  op.infer = [](const InferArgs& args) -> Inferred {
    ValueType type{args.in[0].dtype, {}, {}};
    for (std::int64_t size : args.attrs.as<OfTraceAttrs>().shape) type.shape.push_back(size);
    return {{type}, Locality::kFullBatch};
  };
  op.kernel = copy_bytes;
  op.samples = {{.shapes = {{2, 3}}, .attrs = OfTraceAttrs{.shape = {2, 3}}}};
  return op;
}

}  // namespace

Value as_type(Builder& b, Value value, ValueType type) {
  if (b.type(value) == type) return value;
  if (b.type(value).batched()) value = b("as_rows", {value});
  Shape shape = type.shape;
  if (type.batched()) {
    Symbols& symbols = b.graph().symbols;
    shape[type.batch.axis] = dim_of(symbols, size_of(symbols, type, type.batch.axis));
  }
  if (b.type(value).shape != shape) {
    value = b("reshape", {value}, ReshapeAttrs{.shape = {shape.begin(), shape.end()}});
  }
  if (!type.batched()) return value;
  return b("as_examples", {value},
           ExamplesAttrs{.axis = type.batch.axis,
                         .rows = type.batch.rows_per_example,
                         .count = kSymbols + type.batch.symbol});
}

std::vector<OpDef> alias_ops() {
  return {identity_op(), stop_gradient_op(), as_examples_op(), as_rows_op(), of_trace_op()};
}

}  // namespace samegrad
