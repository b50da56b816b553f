#include "bind/convert.h"

#include "base/error.h"
#include "tensor/non_addressable.h"

namespace py = pybind11;

namespace samegrad {

const Array& concrete(const Tensor& tensor, const char* op_name) {
  if (tensor.symbolic()) {
    fail(
        ErrorKind::kType, op_name,
        "this tensor has no value yet: it belongs to a function that is being traced, where it can "
        "be neither a Python number nor the condition of an `if`; return it from the function to "
        "look at it, print its values with samegrad.print, decide with samegrad.cond or "
        "samegrad.where, or look at all values under samegrad.config.run_functions_eagerly(True).");
  }
  if (is_non_addressable(tensor.array)) {
    fail(ErrorKind::kRuntime, op_name,
         "another process has this value: look at those of experimental_local_results, or join "
         "all with strategy.gather.");
  }
  return tensor.array;
}

const Array& wherever(const Tensor& tensor, const char* op_name) {
  return is_non_addressable(tensor.array) ? tensor.array : concrete(tensor, op_name);
}

py::dtype numpy_dtype(DType dtype) {
  if (dtype == DType::kBFloat16) {  // NumPy has none of its own
    static constinit Imported bfloat16("ml_dtypes", "bfloat16");
    return py::dtype::from_args(bfloat16.get());
  }
  return py::dtype(std::string(name_of(dtype)));
}

namespace {
// By NumPy's letter of the kind and the size: it makes names in Python, anew for each array.
std::optional<DType> native_dtype(const py::dtype& dtype) {
  constexpr char kLetters[] = {'f', 'i', 'u', 'b'};  // by DTypeKind
  const char order = dtype.byteorder();
  if (order != '=' && order != '|') return std::nullopt;
  for (const DTypeEntry& row : kDTypes) {
    const bool found = kLetters[int(row.kind)] == dtype.kind() && row.bytes == dtype.itemsize();
    if (found && row.dtype != DType::kBFloat16) return row.dtype;
  }
  return std::nullopt;
}
}  // namespace

Array array_from_numpy(const py::array& given, bool copy) {
  py::array array = given;
  const std::optional<DType> native = native_dtype(array.dtype());
  const DType dtype = native ? *native : dtype_from_name(py::str(array.dtype().attr("name")));
  if (!native && !py::cast<bool>(array.dtype().attr("isnative"))) {
    array = py::array(array.attr("astype")(array.dtype().attr("newbyteorder")("=")));
  }
  const bool contiguous = (array.flags() & py::array::c_style) != 0;
  if (!contiguous) {  // raises where there is no memory for the copy
    static constinit Imported contiguous_copy("numpy", "ascontiguousarray");
    array = py::array(contiguous_copy.get()(array));
  }
  Shape shape;
  for (py::ssize_t i = 0; i < array.ndim(); ++i) shape.push_back(array.shape(i));
  const auto bytes = std::size_t(array.nbytes());
  const bool own = contiguous && array.is(given);
  if (copy && own) {
    Array result(dtype, shape);
    std::memcpy(result.raw(), array.data(), bytes);
    return result;
  }
  // The Python object lives until the last view of its memory is gone, whichever thread drops it.
  auto* keep = new py::object(array);
  const auto release = [keep] {
    if (!Py_IsInitialized()) return;  // the process ends: the system takes the memory
    const py::gil_scoped_acquire gil;
    delete keep;
  };
  void* data = const_cast<void*>(array.data());
  return Array(dtype, shape, std::make_shared<Buffer>(data, bytes, release));
}

namespace {
std::vector<py::ssize_t> dims_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}
}  // namespace

py::array numpy_from_array(const Array& array) {
  py::array result(numpy_dtype(array.dtype()), dims_of(array.shape()));
  std::memcpy(result.mutable_data(), array.raw(), array.bytes());
  return result;
}

py::array numpy_view(const Array& array) {
  auto* keep = new std::shared_ptr<Buffer>(array.buffer());
  const py::capsule owner(keep, [](void* p) { delete static_cast<std::shared_ptr<Buffer>*>(p); });
  py::array view(numpy_dtype(array.dtype()), dims_of(array.shape()), array.raw(), owner);
  view.attr("setflags")(py::arg("write") = false);
  return view;
}

py::tuple shape_tuple(const Shape& shape) {
  py::tuple result(shape.rank());
  for (int axis = 0; axis < shape.rank(); ++axis) {
    result[std::size_t(axis)] = shape[axis] == kBatchDim || is_symbolic(shape[axis])
                                    ? py::object(py::none())
                                    : py::int_(shape[axis]);
  }
  return result;
}

namespace {
// An integer if it has 64 bits at most. Not pybind11's cast, which forgets what the value's
// class raises.
std::optional<std::int64_t> exact_from_python(const py::handle& value) {
  const auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!whole) throw py::error_already_set();
  int overflow = 0;
  const long long exact = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  return overflow == 0 ? std::optional<std::int64_t>(exact) : std::nullopt;
}

std::int64_t whole_from_python(const py::handle& value) {
  const auto exact = exact_from_python(value);
  if (!exact) throw py::cast_error();
  return *exact;
}

// Integers beyond 64 bits are rounded to a double, as NumPy does.
Scalar number_from_python(const py::handle& value) {
  if (PyIndex_Check(value.ptr())) {
    if (const auto exact = exact_from_python(value)) return *exact;
  }
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred()) throw py::error_already_set();
  return number;
}

bool flag_from_python(const py::handle& value) {
  const PyNumberMethods* const number = Py_TYPE(value.ptr())->tp_as_number;
  if (!value.is_none() && !(number && number->nb_bool)) throw py::cast_error("no bool");
  const int flag = PyObject_IsTrue(value.ptr());
  if (flag < 0) throw py::error_already_set();
  return flag != 0;
}

// True for the errors by which an object rejects a conversion to another kind.
bool refuses(const py::error_already_set& error) {
  return error.matches(PyExc_TypeError) || error.matches(PyExc_ValueError) ||
         error.matches(PyExc_OverflowError);
}

// True if a class written in Python has the conversion of an attribute: its error is then its own,
// with or without a traceback.
bool converts_itself(const py::handle& value, AttrKind kind) {
  const PyTypeObject* const type = Py_TYPE(value.ptr());
  const PyNumberMethods* const number = type->tp_as_number;
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || !number) return false;
  switch (kind) {
    case AttrKind::kFlag:
      return number->nb_bool;
    case AttrKind::kInteger:
    case AttrKind::kIntegers:
      return number->nb_index;
    case AttrKind::kNumber:
      return number->nb_index || number->nb_float;
    case AttrKind::kString:
    case AttrKind::kDType:
      break;
  }
  return false;
}

const char* wanted(AttrKind kind) {
  switch (kind) {
    case AttrKind::kFlag:
      return "True or False";
    case AttrKind::kInteger:
      return "a 64-bit integer";
    case AttrKind::kNumber:
      return "a number";
    case AttrKind::kString:
      return "a string";
    case AttrKind::kDType:
      return "the name of a dtype";
    case AttrKind::kIntegers:
      break;
  }
  return "64-bit integers";
}
}  // namespace

std::string shown(const py::handle& value) {
  static constinit Imported shown("samegrad._base.shown", "shown");
  return py::cast<std::string>(shown.get()(value));
}

void set_from_python(AttrDraft& draft, std::string_view op_name, const AttrSpec& spec,
                     const py::handle& value) {
  py::object item;  // of several integers
  try {
    switch (spec.kind) {
      case AttrKind::kFlag:
        return draft.set(spec.name, flag_from_python(value));
      case AttrKind::kInteger:
        return draft.set(spec.name, whole_from_python(value));
      case AttrKind::kNumber:
        return draft.set(spec.name, number_from_python(value));
      case AttrKind::kString:
        return draft.set(spec.name, py::cast<std::string>(value));
      case AttrKind::kDType:
        return draft.set(spec.name, dtype_from_name(py::cast<std::string>(py::str(value))));
      case AttrKind::kIntegers: {
        Ints numbers;
        for (const py::handle each : py::iter(value)) {
          item = py::reinterpret_borrow<py::object>(each);
          numbers.push_back(whole_from_python(item));
        }
        return draft.set(spec.name, std::move(numbers));
      }
    }
  } catch (const py::cast_error&) {
    // Refused below.
  } catch (const py::error_already_set& error) {
    // Errors of the value's own Python code, interrupts and MemoryError pass through unchanged.
    const py::handle& converted = item ? item : value;
    if (error.trace() || converts_itself(converted, spec.kind) || !refuses(error)) throw;
  }
  fail(ErrorKind::kType, op_name, spec.name, " must be ", wanted(spec.kind), ": got ", shown(value),
       "; it says: ", spec.doc);
}

namespace {
struct ToPython {
  py::object operator()(const bool* value) const { return py::bool_(*value); }
  py::object operator()(const std::int64_t* value) const { return py::int_(*value); }
  py::object operator()(const Scalar* value) const {
    if (value->is_whole()) return py::int_(value->as<std::int64_t>());
    return py::float_(value->as<double>());
  }
  py::object operator()(const std::string* value) const { return py::str(*value); }
  py::object operator()(const DType* value) const { return py::str(name_of(*value)); }
  py::object operator()(const ChoiceView& value) const { return py::str(value.name()); }
  py::object operator()(const Ints* values) const {
    py::tuple result(values->size());
    for (std::size_t i = 0; i < values->size(); ++i) result[i] = py::int_((*values)[i]);
    return result;
  }
};
}  // namespace

py::object python_from_attr(const AttrView& value) {
  return std::visit(ToPython{}, value);
}

}  // namespace samegrad
