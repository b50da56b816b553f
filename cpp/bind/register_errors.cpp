#include <new>

#include "bind/bind.h"
#include "bind/user_location.h"
#include "ir/located_error.h"

namespace py = pybind11;

namespace samegrad {
namespace {

struct Classes {
  py::object invalid_argument;
  py::object non_finite;
};

Classes* classes = nullptr;

PyObject* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kType:
      return PyExc_TypeError;
    case ErrorKind::kRuntime:
      return PyExc_RuntimeError;
    case ErrorKind::kIndex:
      return PyExc_IndexError;
    case ErrorKind::kNotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::kInvalidArgument:
      return classes->invalid_argument.ptr();
    case ErrorKind::kMemory:
      return PyExc_MemoryError;
    case ErrorKind::kNonFinite:
      return classes->non_finite.ptr();
    case ErrorKind::kValue:
      break;
  }
  return PyExc_ValueError;
}

py::object make_class(py::module_& m, const char* name, PyObject* base, const char* doc) {
  const std::string full = std::string("samegrad.errors.") + name;
  py::object made = py::reinterpret_steal<py::object>(
      PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr));
  m.attr(name) = made;
  return made;
}

// Looks the line up on the way out: a program without errors does no work for it.
std::string message_of(const LocatedError& error) {
  try {
    return error.what() + in_user_code(error.line().empty() ? user_location() : error.line());
  } catch (const py::error_already_set&) {
    return error.what();  // the interpreter ends
  }
}

}  // namespace

void register_errors(py::module_& m) {
  classes = new Classes;
  classes->invalid_argument = make_class(m, "InvalidArgumentError", PyExc_ValueError,
                                         "An operand holds values that the operation rules out.");
  classes->non_finite = make_class(m, "NonFiniteError", PyExc_ArithmeticError,
                                   "An operation made a NaN or an infinity.");
  py::register_exception_translator([](std::exception_ptr pointer) {  // NOLINT: as pybind11 has it
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const LocatedError& error) {
      PyErr_SetString(class_of(error.kind()), message_of(error).c_str());
    } catch (const Error& error) {
      PyErr_SetString(class_of(error.kind()), error.what());
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError,
                      "[samegrad] the system gives no more memory; use smaller batches, tensors or "
                      "shuffle buffers.");
    }
  });
}

}  // namespace samegrad
