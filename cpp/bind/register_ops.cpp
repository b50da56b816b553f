// One Python function per row of the op table.
#include <pybind11/stl.h>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"

namespace py = pybind11;

namespace samegrad {
namespace {

Attrs attrs_from_kwargs(const OpDef& op, const py::kwargs& kwargs) {
  Attrs attrs;
  for (const auto& [key, value] : kwargs) {
    const auto name = py::cast<std::string>(key);
    const AttrSpec* found = nullptr;
    for (const AttrSpec& spec : op.attrs) {
      if (spec.name == name) found = &spec;
    }
    if (!found) fail(ErrorKind::kType, op.name, "there is no attribute '", name, "'.");
    attrs.set(name, attr_from_python(op, *found, value));
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
  py::list attrs;
  for (const AttrSpec& spec : op.attrs) {
    py::dict attr;
    attr["name"] = spec.name;
    attr["doc"] = spec.doc;
    attr["kind"] = int(spec.kind);
    attr["required"] = spec.fallback.empty();
    attr["default"] =
        spec.fallback.empty() ? py::object(py::none()) : python_from_attr(spec.fallback[0]);
    attrs.append(attr);
  }
  py::list samples;
  for (const Sample& sample : op.samples) {
    py::dict entry, given;
    for (const auto& [name, value] : sample.attrs.items())
      given[py::str(name)] = python_from_attr(value);
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
  row["attrs"] = attrs;
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
  for (const AttrSpec& spec : op.attrs) {
    line += (line.back() == '(' ? "" : ", ") + spec.name;
    if (!spec.fallback.empty()) line += "=" + to_string(spec.fallback[0]);
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
