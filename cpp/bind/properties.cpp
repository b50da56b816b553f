#include "bind/properties.h"

#include <array>
#include <string>

#include "bind/calls.h"
#include "bind/convert.h"
#include "train/current.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// The names are always the same objects, so that they compare by their addresses.
py::str dtype_name(const Tensor& tensor) {
  static auto* const names = new std::array<PyObject*, std::size(kDTypes)>{};
  PyObject*& name = (*names)[std::size_t(tensor.type.dtype)];
  if (!name) name = PyUnicode_InternFromString(row_of(tensor.type.dtype).name);
  if (!name) throw py::error_already_set();
  return py::reinterpret_borrow<py::str>(name);
}

int rank(const Tensor& tensor) {
  return tensor.type.shape.rank();
}

// Sizes that follow from counts are None. An array that a program takes as examples has a number of
// them. A trace that is over has no symbols.
py::tuple shape(const Tensor& tensor) {
  if (!tensor.symbolic() || !tensor.type.batched()) return shape_tuple(tensor.type.shape);
  const Symbols& symbols = tensor.trace->program().symbols;
  Shape known = tensor.type.shape;
  const int axis = tensor.type.batch.axis;
  if (!symbols.empty())
    known[axis] = size_of(symbols, tensor.type, axis).number().value_or(kBatchDim);
  return shape_tuple(known);
}

bool symbolic(const Tensor& tensor) {
  return tensor.symbolic();
}

// True if the step that traces the tensor can evaluate values while it is traced.
bool looks(const Tensor& tensor) {
  return tensor.symbolic() && tensor.trace->evaluates();
}

// True if the recording tape knows the tensor: a copy of it would not get gradients.
bool recorded(const Tensor& tensor) {
  const std::shared_ptr<Trace>& trace = current().trace;
  return !tensor.symbolic() && trace != nullptr && trace->knows(tensor);
}

// The axis that counts examples and the rows of each, or None.
py::object example_axis(const Tensor& tensor) {
  if (!tensor.type.batched()) return py::none();
  return py::make_tuple(tensor.type.batch.axis, tensor.type.batch.rows_per_example);
}

py::object object_of(py::object result) {
  return result;
}
py::object object_of(bool result) {
  return py::bool_(result);
}
py::object object_of(int result) {
  return py::int_(result);
}

struct Property {
  PyObject* by_pybind11;
  std::string doc;
  PyGetSetDef definition;
};

template <auto kFunction>
PyObject* get(PyObject* self, void* closure) {
  if (const Tensor* const tensor = tensor_in(self)) {
    return returned([&] { return object_of(kFunction(*tensor)); });
  }
  return PyObject_CallOneArg(static_cast<const Property*>(closure)->by_pybind11, self);
}

// A property of pybind11's, behind one that answers for plain tensors by itself.
template <auto kFunction>
void define(py::class_<Tensor>& cls, const char* name) {
  cls.def_property_readonly(name, kFunction);
  const py::object slow = cls.attr(name).attr("fget");
  static auto* const property = new Property{};
  property->doc = py::cast<std::string>(slow.attr("__doc__"));
  property->by_pybind11 = py::object(slow).release().ptr();
  property->definition = {name, &get<kFunction>, nullptr, property->doc.c_str(), property};
  auto* const type = reinterpret_cast<PyTypeObject*>(cls.ptr());
  cls.attr(name) =
      py::reinterpret_steal<py::object>(PyDescr_NewGetSet(type, &property->definition));
}

}  // namespace

void register_properties(py::class_<Tensor>& cls) {
  define<&dtype_name>(cls, "_dtype");
  define<&rank>(cls, "_rank");
  define<&shape>(cls, "_shape");
  define<&symbolic>(cls, "_symbolic");
  define<&looks>(cls, "_looks");
  define<&recorded>(cls, "_recorded");
  define<&example_axis>(cls, "_example_axis");
}

}  // namespace samegrad
