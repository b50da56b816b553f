// One Python function per row of the op table.
#include <pybind11/stl.h>

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/calls.h"
#include "bind/convert.h"
#include "bind/python_host.h"

namespace py = pybind11;

namespace samegrad {
namespace {

std::span<const AttrSpec> attr_specs(const OpDef& op) {
  return op.attrs ? op.attrs->fields : std::span<const AttrSpec>();
}

// Attributes by their names, whose values are beside them.
Attrs attrs_from(const OpDef& op, PyObject* names, PyObject* const* values) {
  AttrDraft draft(op.name, op.attrs);
  const Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_ssize_t letters = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, i), &letters);
    if (!text) throw py::error_already_set();
    const std::string_view name(text, std::size_t(letters));
    const auto specs = attr_specs(op);
    const auto found =
        std::ranges::find_if(specs, [&](const AttrSpec& spec) { return spec.name == name; });
    SG_CHECK_TYPE(found != specs.end(), op.name, "there is no attribute '", name, "'.");
    set_from_python(draft, op.name, *found, values[i]);
  }
  return draft.finish();
}

// Describes each attribute and its default.
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

const Tensor* operand(const OpDef& op, PyObject* object) {
  if (const Tensor* tensor = tensor_in(object)) return tensor;
  const py::handle given(object);
  if (!py::isinstance<Tensor>(given)) {
    fail(ErrorKind::kType, op.name, "operands must be tensors: got ",
         std::string(py::str(py::type::of(given).attr("__name__"))),
         "; convert it with samegrad.convert_to_tensor.");
  }
  return &py::cast<const Tensor&>(given);
}

// A function of Python's, whose first argument is the capsule of the row.
PyObject* call(PyObject* row, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return returned([&] {
    const auto& op = *static_cast<const OpDef*>(PyCapsule_GetPointer(row, nullptr));
    std::vector<const Tensor*> inputs;
    inputs.reserve(std::size_t(count));
    for (Py_ssize_t i = 0; i < count; ++i) inputs.push_back(operand(op, args[i]));
    return python_results(apply(python_host, op, inputs, attrs_from(op, names, args + count)));
  });
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
  row["may_raise"] = op.has(kMayRaise);
  row["random"] = op.has(kRandomOp);
  row["has_kernel"] = op.kernel != nullptr;
  row["version"] = op.version;  // of saved models; 0: no file has it
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

// The doc string and definition of a function. Python refers to both, so they never move.
struct Function {
  std::string doc;
  PyMethodDef definition;
};

}  // namespace

void register_ops(py::module_& m) {
  py::module_ ops = m.def_submodule("ops", "One function per row of the op table.");
  static auto* const functions = new std::deque<Function>;
  const py::object module = ops.attr("__name__");
  for (const OpDef* op : OpRegistry::instance().all()) {
    Function& function = functions->emplace_back(Function{signature(*op), {}});
    auto* const entry = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call));
    function.definition = {op->name.c_str(), entry, METH_FASTCALL | METH_KEYWORDS,
                           function.doc.c_str()};
    const py::capsule row(op, static_cast<void (*)(void*)>(nullptr));
    ops.add_object(op->name.c_str(), py::reinterpret_steal<py::object>(PyCFunction_NewEx(
                                         &function.definition, row.ptr(), module.ptr())));
  }
  m.def("op_table", [] {
    py::list rows;
    for (const OpDef* op : OpRegistry::instance().all()) rows.append(describe(*op));
    return rows;
  });
}

}  // namespace samegrad
