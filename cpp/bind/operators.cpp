// Fast path of the operators of eager tensors. Python implements the operators for other operands,
// and their errors. It is called wherever the fast path is not known to give the same result.
#include "bind/operators.h"

#include <structmember.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "bind/calls.h"
#include "bind/python_host.h"
#include "ops/attributes.h"
#include "train/trace.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// ---- what Python calls ----

// A callable that is a method where a class has it, as Python's functions are.
struct Operator {
  PyObject_HEAD vectorcallfunc call;
  PyObject* in_python;
  const OpDef* op;
  bool swapped;
  bool numbers;  // whether Python's numbers are operands like others
  bool floats;   // whether other dtypes are left to Python
};

Operator* operator_of(PyObject* object) {
  return reinterpret_cast<Operator*>(object);
}

PyObject* call_python(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  PyObject* const in_python = operator_of(self)->in_python;
  if (in_python) return PyObject_Vectorcall(in_python, args, count, names);
  PyErr_SetString(PyExc_AttributeError, "[samegrad.Tensor] an operator's in_python was deleted.");
  return nullptr;
}

// Returns the result of f, or of the Python function if f returns nothing or throws: Python then
// repeats the work and raises an error in terms of the call.
template <class F>
PyObject* by_short_way(PyObject* self, PyObject* const* args, std::size_t count, const F& f) {
  if (PyObject* const result = returned(f)) return result;
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
    PyErr_Clear();
  }
  return call_python(self, args, count, nullptr);
}

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  Py_XDECREF(operator_of(self)->in_python);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* bind(PyObject* self, PyObject* object, PyObject* /*type*/) {
  if (object && object != Py_None) return PyMethod_New(self, object);
  Py_INCREF(self);
  return self;
}

// Its name and the like are those of the function in Python.
PyObject* attribute(PyObject* self, PyObject* name) {
  if (PyObject* const own = PyObject_GenericGetAttr(self, name)) return own;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
  PyObject* const in_python = operator_of(self)->in_python;
  if (!in_python) return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(in_python, name);
}

PyTypeObject* operator_class() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(Operator, call), READONLY, nullptr},
      {"__wrapped__", T_OBJECT_EX, offsetof(Operator, in_python), READONLY, nullptr},
      {"in_python", T_OBJECT_EX, offsetof(Operator, in_python), 0, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(&bind)},
                                {Py_tp_getattro, reinterpret_cast<void*>(&attribute)},
                                {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                                {Py_tp_members, members},
                                {0, nullptr}};
  static PyType_Spec spec = {"samegrad._core.Operator", sizeof(Operator), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                 Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};
  static auto* const made = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return made;
}

py::object make_operator(vectorcallfunc call, const py::object& in_python) {
  Operator* const made = PyObject_New(Operator, operator_class());
  if (!made) throw py::error_already_set();
  made->call = call;
  made->in_python = in_python.inc_ref().ptr();
  made->op = nullptr;
  made->swapped = made->numbers = made->floats = false;
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(made));
}

// ---- operators of two operands ----

// An integer of Python's own class; nothing for others, and beyond 64 bits.
std::optional<std::int64_t> whole_number(PyObject* object) {
  if (!PyLong_CheckExact(object)) return std::nullopt;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 ? std::optional<std::int64_t>(value) : std::nullopt;
}

bool holds(DType dtype, std::int64_t value) {
  return visit(dtype, [&]<class T>() {
    if constexpr (kIsOneOf<T, kIntegers>) {
      return std::in_range<T>(value);
    } else {
      return false;
    }
  });
}

// A number that the dtype holds, rounded once at most: `is_plain_number` in Python. Nothing for
// what has to be looked at there.
std::optional<Tensor> plain_number(PyObject* object, DType dtype) {
  const bool wide = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  if (PyFloat_CheckExact(object)) {
    const double value = PyFloat_AS_DOUBLE(object);
    if (!wide || !(-1e38 < value && value < 1e38)) return std::nullopt;
    return make_tensor(Array::number(dtype, value));
  }
  const auto value = whole_number(object);
  if (!value) return std::nullopt;
  constexpr std::int64_t kExact = std::int64_t(1) << 24;
  const bool fits = wide ? -kExact <= *value && *value <= kExact : holds(dtype, *value);
  if (!fits) return std::nullopt;
  return make_tensor(Array::number(dtype, *value));
}

PyObject* call_binary(PyObject* self, PyObject* const* args, std::size_t flagged, PyObject* names) {
  const Operator& row = *operator_of(self);
  const bool plain = PyVectorcall_NARGS(flagged) == 2 && !names;
  const Tensor* const a = plain ? tensor_in(args[0]) : nullptr;
  if (!a) return call_python(self, args, flagged, names);
  // Whole numbers of a trace may be sizes, of which Python keeps account.
  if (!is_floating(a->type.dtype) && (row.floats || current().trace)) {
    return call_python(self, args, flagged, names);
  }
  return by_short_way(self, args, flagged, [&]() -> py::object {
    const Tensor* left = a;
    const Tensor* right = tensor_in(args[1]);
    std::optional<Tensor> number;
    if (!right && row.numbers) {
      number = plain_number(args[1], a->type.dtype);
      if (number) right = &*number;
    }
    if (!right) return {};
    if (row.swapped) std::swap(left, right);
    const Tensor* const operands[] = {left, right};
    return python_results(apply(python_host, *row.op, operands, {}));
  });
}

// ---- parts ----

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

// A key of integers, slices of them, `...` and None.
struct SliceKey {
  SliceAttrs slices;
  Ints dropped, added;  // axes of the operand, axes of the result

  bool add_index(PyObject* object, const Shape& shape) {
    const auto axis = int(slices.begin.size());
    const auto index = whole_number(object);
    if (!index || axis >= shape.rank()) return false;
    if (*index < -shape[axis] || *index >= shape[axis]) return false;
    add(*index, *index == -1 ? kLast : *index + 1, 1);
    dropped.push_back(axis);
    return true;
  }
  bool add_slice(PyObject* object) {
    const auto& slice = *reinterpret_cast<PySliceObject*>(object);
    const auto bound = [](PyObject* given, std::int64_t otherwise) {
      return given == Py_None ? std::optional<std::int64_t>(otherwise) : whole_number(given);
    };
    const auto step = bound(slice.step, 1);
    if (!step || *step == 0) return false;
    const auto begin = bound(slice.start, *step > 0 ? 0 : kLast);
    const auto end = bound(slice.stop, *step > 0 ? kLast : kFirst);
    if (!begin || !end) return false;
    add(*begin, *end, *step);
    return true;
  }
  void add_all(std::int64_t axes) {
    for (std::int64_t i = 0; i < axes; ++i) add(0, kLast, 1);
  }
  void add_axis() {
    added.push_back(std::int64_t(slices.begin.size() - dropped.size() + added.size()));
  }

 private:
  void add(std::int64_t begin, std::int64_t end, std::int64_t step) {
    slices.begin.push_back(begin);
    slices.end.push_back(end);
    slices.strides.push_back(step);
  }
};

// Nothing for keys that Python looks at.
std::optional<SliceKey> part_of(PyObject* key, const Shape& shape) {
  const bool several = PyTuple_CheckExact(key);
  PyObject* const* const items = several ? &PyTuple_GET_ITEM(key, 0) : &key;
  const Py_ssize_t count = several ? PyTuple_GET_SIZE(key) : 1;
  std::int64_t left = shape.rank();  // axes that no item is for
  for (Py_ssize_t i = 0; i < count; ++i) left -= items[i] != Py_None && items[i] != Py_Ellipsis;
  if (left < 0) return std::nullopt;
  SliceKey part;
  bool open = true;  // there was no `...` yet
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const item = items[i];
    if (item == Py_None) {
      part.add_axis();
    } else if (item == Py_Ellipsis && open) {
      part.add_all(left);
      open = false;
    } else if (PySlice_Check(item)) {
      if (!part.add_slice(item)) return std::nullopt;
    } else if (!part.add_index(item, shape)) {
      return std::nullopt;
    }
  }
  if (open) part.add_all(left);
  return part;
}

Tensor apply_one(const OpDef& op, const Tensor& x, Attrs attrs) {
  const Tensor* const operands[] = {&x};
  return std::move(apply(python_host, op, operands, std::move(attrs))[0]);
}

Tensor taken(const Tensor& x, SliceKey part) {
  static const OpDef& slice = OpRegistry::instance().get("slice");
  static const OpDef& squeeze = OpRegistry::instance().get("squeeze");
  static const OpDef& expand_dims = OpRegistry::instance().get("expand_dims");
  Tensor result = apply_one(slice, x, std::move(part.slices));
  if (!part.dropped.empty()) {
    result = apply_one(squeeze, result, SqueezeAttrs{.axes = std::move(part.dropped)});
  }
  if (part.added.empty()) return result;
  return apply_one(expand_dims, result, ExpandDimsAttrs{.axes = std::move(part.added)});
}

PyObject* call_part(PyObject* self, PyObject* const* args, std::size_t flagged, PyObject* names) {
  const bool plain = PyVectorcall_NARGS(flagged) == 2 && !names;
  const Tensor* const x = plain ? tensor_in(args[0]) : nullptr;
  if (!x || x->symbolic()) return call_python(self, args, flagged, names);
  return by_short_way(self, args, flagged, [&]() -> py::object {
    std::optional<SliceKey> part = part_of(args[1], x->type.shape);
    if (!part) return {};
    return py::cast(taken(*x, *std::move(part)));
  });
}

}  // namespace

void register_operators(py::module_& m) {
  // Makes the Python operator of two tensors, and of tensors and numbers if `numbers`. With
  // `floats` it is the operation for floats alone.
  m.def(
      "operator",
      [](const py::object& in_python, const std::string& op, bool swapped, bool numbers,
         bool floats) {
        py::object made = make_operator(&call_binary, in_python);
        Operator* const row = operator_of(made.ptr());
        row->op = &OpRegistry::instance().get(op);
        row->swapped = swapped;
        row->numbers = numbers;
        row->floats = floats;
        return made;
      },
      py::arg("in_python"), py::arg("op"), py::arg("swapped"), py::arg("numbers"),
      py::arg("floats"));
  m.def(
      "parts", [](const py::object& in_python) { return make_operator(&call_part, in_python); },
      py::arg("in_python"));
}

}  // namespace samegrad
