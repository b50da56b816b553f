// Functions that Python calls without pybind11's dispatch, which costs more than a small operation.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "bind/tensor_caster.h"

namespace samegrad {

// Python's class of tensors: set when it is registered.
inline PyTypeObject* tensor_class = nullptr;

// The tensor in an object of this very class whose constructor has run; null for any other.
inline const Tensor* tensor_in(PyObject* object) {
  if (Py_TYPE(object) != tensor_class) return nullptr;
  auto* const self = reinterpret_cast<pybind11::detail::instance*>(object);
  if (!self->simple_layout || !self->simple_holder_constructed) return nullptr;
  return static_cast<const Tensor*>(self->simple_value_holder[0]);
}

// Sets Python's error from the exception that is being handled, as pybind11 does.
inline void set_python_error() noexcept {
  try {
    throw;
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (...) {
    pybind11::detail::try_translate_exceptions();
  }
}

// Returns the object that f returns; null with Python's error set if f throws.
template <class F>
PyObject* returned(const F& f) noexcept {
  try {
    return f().release().ptr();
  } catch (...) {
    set_python_error();
  }
  return nullptr;
}

// The one result of an operation, or a list of several.
pybind11::object python_results(std::vector<Tensor> results);

}  // namespace samegrad
