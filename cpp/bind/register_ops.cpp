// One Python function per row of the op table.
#include <pybind11/stl.h>

#include <algorithm>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"

namespace py = pybind11;

namespace samegrad {
namespace {

std::span<const AttrSpec> attr_specs(const OpDef& op) {
  return op.attrs ? op.attrs->fields : std::span<const AttrSpec>();
}

Attrs attrs_from_kwargs(const OpDef& op, const py::kwargs& kwargs) {
  AttrDraft draft(op.name, op.attrs);
  for (const auto& [key, value] : kwargs) {
    const auto name = py::cast<std::string>(key);
    const auto specs = attr_specs(op);
    const auto found =
        std::ranges::find_if(specs, [&](const AttrSpec& spec) { return spec.name == name; });
    check_type(found != specs.end(), op.name, "there is no attribute '", name, "'.");
    set_from_python(draft, op.name, *found, value);
  }
  return draft.finish();
}

// What each attribute is if it is not given.
py::list describe_attrs(const OpDef& op) {
  py::list attrs;
  const std::shared_ptr<void> start = op.attrs ? op.attrs->copy(nullptr) : nullptr;
  for (std::size_t i = 0; i < attr_specs(op).size(); ++i) {
    const AttrSpec& spec = attr_specs(op)[i];
    py::dict attr;
    attr["name"] = spec.name;
    attr["doc"] = spec.doc;
    attr["kind"] = int(spec.kind);
    attr["required"] = spec.required;
    attr["default"] =
        spec.required ? py::object(py::none()) : python_from_attr(op.attrs->field(start.get(), i));
    attrs.append(attr);
  }
  return attrs;
}

py::object call(const OpDef& op, const py::args& args, const py::kwargs& kwargs) {
  std::vector<Tensor> inputs;
  for (const py::handle arg : args) {
    if (!py::isinstance<Tensor>(arg)) {
      fail(ErrorKind::kType, op.name, "operands must be tensors: got ",
           std::string(py::str(py::type::of(arg).attr("__name__"))),
           "; convert it with samegrad.convert_to_tensor.");
    }
    inputs.push_back(py::cast<const Tensor&>(arg));
  }
  std::vector<Tensor> results = apply(op, inputs, attrs_from_kwargs(op, kwargs));
  if (results.size() == 1) return py::cast(std::move(results[0]));
  return py::cast(std::move(results));
}

py::dict describe(const OpDef& op) {
  py::list samples;
  for (const Sample& sample : op.samples) {
    py::dict entry, given;
    for (std::size_t i = 0; i < sample.attrs.fields(); ++i) {
      given[attr_specs(op)[i].name] = python_from_attr(sample.attrs.field(i));
    }
    py::list dtypes;
    for (DType dtype : sample.dtypes) dtypes.append(name_of(dtype));
    entry["shapes"] = sample.shapes;
    entry["attrs"] = given;
    entry["low"] = sample.low;
    entry["high"] = sample.high;
    entry["dtypes"] = dtypes;
    entry["batched"] = std::vector<int>(sample.batched.begin(), sample.batched.end());
    entry["integer_high"] = sample.integer_high;
    samples.append(entry);
  }
  py::dict row;
  row["name"] = op.name;
  row["doc"] = op.doc;
  row["operands"] = op.operands;
  row["min_arity"] = op.min_arity;
  row["max_arity"] = op.max_arity;
  row["attrs"] = describe_attrs(op);
  row["regions"] = op.regions;
  row["samples"] = samples;
  row["differentiable"] = !op.has(kNoGradient) && (op.vjp || op.decompose);
  row["backward"] = op.has(kBackward);
  row["elementwise"] = op.has(kElementwise);
  row["collective"] = op.has(kCollective);
  row["random"] = op.has(kRandomOp);
  row["has_kernel"] = op.kernel != nullptr;
  return row;
}

std::string signature(const OpDef& op) {
  std::string line = op.name + "(";
  for (std::size_t i = 0; i < op.operands.size(); ++i) line += (i ? ", " : "") + op.operands[i];
  const std::shared_ptr<void> start = op.attrs ? op.attrs->copy(nullptr) : nullptr;
  for (std::size_t i = 0; i < attr_specs(op).size(); ++i) {
    const AttrSpec& spec = attr_specs(op)[i];
    line += text(line.back() == '(' ? "" : ", ", spec.name);
    if (!spec.required) line += "=" + to_string(op.attrs->field(start.get(), i));
  }
  return line + ")\n\n" + op.doc;
}

}  // namespace

void register_ops(py::module_& m) {
  py::module_ ops = m.def_submodule("ops", "One function per row of the op table.");
  for (const OpDef* op : OpRegistry::instance().all()) {
    ops.def(
        op->name.c_str(),
        [op](const py::args& args, const py::kwargs& kwargs) { return call(*op, args, kwargs); },
        signature(*op).c_str());
  }
  m.def("op_table", [] {
    py::list rows;
    for (const OpDef* op : OpRegistry::instance().all()) rows.append(describe(*op));
    return rows;
  });
}

}  // namespace samegrad
