#include "ir/builder.h"

#include "base/error.h"
#include "ir/placement.h"

namespace samegrad {
void check_arity(const OpDef& op, std::size_t operands) {
  const int count = int(operands);
  if (count >= op.min_arity && (op.max_arity < 0 || count <= op.max_arity)) return;
  fail(ErrorKind::kType, op.name, "takes ", op.min_arity,
       op.max_arity == op.min_arity ? "" : " or more", " operands: got ", count, ".");
}

void check_regions(const OpDef& op, std::size_t regions) {
  SG_CHECK_TYPE(regions == op.regions.size(), op.name, "has ", op.regions.size(), " regions: got ",
                regions, ".");
}

Attrs complete_attrs(const OpDef& op, Attrs attrs) {
  if (op.attrs && !attrs.schema()) attrs = AttrDraft(op.name, op.attrs).finish();
  if (attrs.schema() != op.attrs) {
    fail(ErrorKind::kType, op.name, "has ", op.attrs ? op.attrs->name : "no", " attributes: got ",
         attrs.schema()->name, " (", to_string(attrs), ").");
  }
  attrs.set_owner(op.name);
  return attrs;
}

namespace {

// The type with numbers for lengths, to which the program is bound.
void bind_lengths(Symbols& symbols, ValueType& type) {
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    if (!follows_lengths(symbols, type.shape[axis])) continue;
    type.shape[axis] = bound_size(symbols, size_of(symbols, type.shape[axis]));
  }
}

}  // namespace

Values Builder::apply(const OpDef& op, std::span<const Value> inputs, Attrs attrs,
                      std::vector<GraphPtr> regions) {
  check_arity(op, inputs.size());
  check_regions(op, regions.size());
  Node node;
  node.op = &op;
  node.inputs.assign(inputs.begin(), inputs.end());
  node.attrs = complete_attrs(op, std::move(attrs));
  node.regions = std::move(regions);
  std::vector<ValueType> types;
  for (Value input : inputs) types.push_back(graph_.type(input));
  if (op.has(kKnownSizes)) {
    for (ValueType& type : types) bind_lengths(graph_.symbols, type);
  }
  Inferred inferred = op.infer({op, types, node.attrs, graph_.symbols, node.regions});
  node.locality = inferred.locality;
  node.derivative = deriving_.has_value();
  node.location = deriving_.value_or(-1);
  const std::int32_t index = graph_.nodes.next_id().number();
  for (std::size_t i = 0; i < inferred.types.size(); ++i) {
    (void)size_in_bytes(inferred.types[i].dtype, inferred.types[i].shape);  // there must be one
    const Placement placement = placement_of(graph_, node, inferred, i);
    node.outputs.push_back(graph_.values.push_back(
        {inferred.types[i], Source::kNode, index, std::int32_t(i), placement}));
  }
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

Value Builder::operator()(std::string_view op, std::initializer_list<Value> inputs, Attrs attrs) {
  return apply(OpRegistry::instance().get(op), {inputs.begin(), inputs.size()},
               std::move(attrs))[0];
}

Values Builder::many(std::string_view op, std::initializer_list<Value> inputs, Attrs attrs) {
  return apply(OpRegistry::instance().get(op), {inputs.begin(), inputs.size()}, std::move(attrs));
}

Values Builder::called_gradient(std::int64_t callback, const Values&) {
  fail(ErrorKind::kRuntime, "custom_gradient", "function ", callback,
       " belongs to another trace; take the gradient where the tape recorded.");
}

void Builder::begin_call(std::int32_t run) {
  open_calls_.push_back(graph_.calls.size());
  graph_.calls.push_back({graph_.nodes.next_id(), kNoNode, run});
}

void Builder::end_call(std::span<const Value>) {
  CallRange& call = graph_.calls[open_calls_.back()];
  call.end = graph_.nodes.next_id();
  if (call.begin == call.end && open_calls_.back() + 1 == graph_.calls.size()) {
    graph_.calls.pop_back();
  }
  open_calls_.pop_back();
}

Value Builder::number(DType dtype, Scalar value) {
  const Value constant = graph_.add_constant(Array::number(dtype, value));
  graph_.values[constant].counts = CountPowers{};  // the rules of ops have no counts
  return constant;
}

}  // namespace samegrad
