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
py::object dtype_name(const Tensor& tensor) {
  static auto* const names = new std::array<PyObject*, std::size(kDTypes)>{};
  PyObject*& name = (*names)[std::size_t(tensor.type.dtype)];
  if (!name) name = PyUnicode_InternFromString(row_of(tensor.type.dtype).name);
  if (!name) throw py::error_already_set();
  return py::reinterpret_borrow<py::object>(name);
}

py::object rank(const Tensor& tensor) {
  return py::int_(tensor.type.shape.rank());
}

py::object shape(const Tensor& tensor) {
  return shape_tuple(tensor.type.shape);
}

py::object symbolic(const Tensor& tensor) {
  return py::bool_(tensor.symbolic());
}

py::object looks(const Tensor& tensor) {
  return py::bool_(tensor.symbolic() && tensor.trace->evaluates());
}

py::object recorded(const Tensor& tensor) {
  const std::shared_ptr<Trace>& trace = current().trace;
  return py::bool_(trace != nullptr && tensor.recorded.lock() == trace);
}

py::object example_axis(const Tensor& tensor) {
  if (!tensor.type.batched()) return py::none();
  return py::make_tuple(tensor.type.batch.axis, tensor.type.batch.rows_per_example);
}

struct Property {
  py::object (*get)(const Tensor& tensor);
  PyObject* by_pybind11;
  std::string doc;
  PyGetSetDef definition;
};

PyObject* get(PyObject* self, void* closure) {
  const auto& property = *static_cast<const Property*>(closure);
  if (const Tensor* const tensor = tensor_in(self)) {
    return returned([&] { return property.get(*tensor); });
  }
  return PyObject_CallOneArg(property.by_pybind11, self);
}

}  // namespace

void shorten_properties(const py::object& cls) {
  constexpr std::pair<const char*, py::object (*)(const Tensor&)> kShort[] = {
      {"_dtype", &dtype_name},         {"_rank", &rank},   {"_shape", &shape},
      {"_symbolic", &symbolic},        {"_looks", &looks}, {"_recorded", &recorded},
      {"_example_axis", &example_axis}};
  static auto* const properties = new std::array<Property, std::size(kShort)>;
  for (std::size_t i = 0; i < std::size(kShort); ++i) {
    const auto& [name, answer] = kShort[i];
    Property& property = (*properties)[i];
    py::object slow = cls.attr(name).attr("fget");
    property.get = answer;
    property.doc = py::cast<std::string>(slow.attr("__doc__"));
    property.by_pybind11 = slow.release().ptr();
    property.definition = {name, &get, nullptr, property.doc.c_str(), &property};
    auto* const type = reinterpret_cast<PyTypeObject*>(cls.ptr());
    cls.attr(name) =
        py::reinterpret_steal<py::object>(PyDescr_NewGetSet(type, &property.definition));
  }
}

}  // namespace samegrad
