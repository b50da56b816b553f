#include "ir/builder.h"

#include "base/error.h"
#include "ir/placement.h"

namespace samegrad {
namespace {

bool matches(AttrKind kind, const AttrValue& value) {
  return value.index() == std::size_t(kind);
}

const char* name_of_kind(AttrKind kind) {
  constexpr const char* kNames[] = {"a bool",          "an int",  "a number", "a string",
                                    "a tuple of ints", "a dtype", "a graph"};
  return kNames[int(kind)];
}

// bool, int64, number, string, ints, dtype, graph: the order of AttrKind and of AttrValue.
static_assert(std::is_same_v<std::variant_alternative_t<1, AttrValue>, std::int64_t>);
static_assert(std::is_same_v<std::variant_alternative_t<5, AttrValue>, DType>);

}  // namespace

void check_arity(const OpDef& op, std::size_t operands) {
  const int count = int(operands);
  if (count >= op.min_arity && (op.max_arity < 0 || count <= op.max_arity)) return;
  fail(ErrorKind::kType, op.name, "takes ", op.min_arity,
       op.max_arity == op.min_arity ? "" : " or more", " operands: got ", count, ".");
}

Attrs complete_attrs(const OpDef& op, Attrs attrs) {
  Attrs result;
  for (const AttrSpec& spec : op.attrs) {
    const AttrValue* given = attrs.find(spec.name);
    if (!given && spec.fallback.empty()) {
      fail(ErrorKind::kType, op.name, "attribute '", spec.name, "' is required.");
    }
    AttrValue value = given ? *given : spec.fallback[0];
    // An int where a float is wanted is what Python's users write.
    if (spec.kind == AttrKind::kNumber && std::holds_alternative<std::int64_t>(value)) {
      value = Number(std::get<std::int64_t>(value));
    }
    if (!matches(spec.kind, value)) {
      fail(ErrorKind::kType, op.name, "attribute '", spec.name, "' must be ",
           name_of_kind(spec.kind), ": got ", to_string(value), ".");
    }
    result.set(spec.name, std::move(value));
  }
  for (const auto& [name, value] : attrs.items()) {
    if (!result.find(name)) {
      fail(ErrorKind::kType, op.name, "there is no attribute '", name, "'.");
    }
  }
  return result;
}

Values Builder::apply(const OpDef& op, std::span<const Value> inputs, Attrs attrs) {
  check_arity(op, inputs.size());
  Node node;
  node.op = &op;
  node.inputs.assign(inputs.begin(), inputs.end());
  node.attrs = complete_attrs(op, std::move(attrs));
  std::vector<ValueType> types;
  for (Value input : inputs) types.push_back(graph_.type(input));
  Inferred inferred = op.infer({op, types, node.attrs, graph_.symbols});
  node.locality = inferred.locality;
  node.derivative = deriving_.has_value();
  node.location = deriving_.value_or(-1);
  const auto index = std::int32_t(graph_.nodes.size());
  for (std::size_t i = 0; i < inferred.types.size(); ++i) {
    (void)size_in_bytes(inferred.types[i].dtype, inferred.types[i].shape);  // there must be one
    const Placement placement = placement_of(graph_, node, inferred, i);
    node.outputs.push_back(Value(graph_.values.size()));
    graph_.values.push_back({inferred.types[i], Source::kNode, index, std::int32_t(i), placement});
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

void Builder::begin_call(std::int32_t run) {
  open_calls_.push_back(graph_.calls.size());
  graph_.calls.push_back({std::int32_t(graph_.nodes.size()), -1, run});
}

void Builder::end_call(std::span<const Value>) {
  CallRange& call = graph_.calls[open_calls_.back()];
  call.end = std::int32_t(graph_.nodes.size());
  if (call.begin == call.end && open_calls_.back() + 1 == graph_.calls.size()) {
    graph_.calls.pop_back();
  }
  open_calls_.pop_back();
}

Value Builder::number(DType dtype, Number value) {
  const Value constant = graph_.add_constant(Array::number(dtype, value));
  graph_.values[std::size_t(constant)].counts = CountPowers{};  // the rules of rows have no counts
  return constant;
}

}  // namespace samegrad
