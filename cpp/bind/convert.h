// Between Python's objects and the engine's.
#pragma once

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "bind/tensor_caster.h"
#include "ir/op_def.h"
#include "train/graph_trace.h"

namespace samegrad {

// An attribute of a Python module, imported at its first use and kept: freed with the other
// statics, it would outlive the interpreter. To be a constinit static: a static that C++ guards may
// not import, for another thread can wait for the guard with Python's lock in its hands.
class Imported {
 public:
  constexpr Imported(const char* module, const char* name) : module_(module), name_(name) {}
  const pybind11::object& get() {
    const auto import = [this] { return pybind11::module_::import(module_).attr(name_); };
    return stored_.call_once_and_store_result(import).get_stored();
  }

 private:
  const char* module_;
  const char* name_;
  pybind11::gil_safe_call_once_and_store<pybind11::object> stored_;
};

// The tensor's array; TypeError if it has no value yet.
const Array& concrete(const Tensor& tensor, const char* op_name);
// The tensor's array, which may be of another process; TypeError if it has no value yet.
const Array& wherever(const Tensor& tensor, const char* op_name);
// A contiguous array of a supported dtype; shares memory if `copy` is false and the layout allows
// it.
Array array_from_numpy(const pybind11::array& array, bool copy);
// A new array with the same numbers.
pybind11::array numpy_from_array(const Array& array);
// A read-only view; the memory lives as long as the view.
pybind11::array numpy_view(const Array& array);
pybind11::dtype numpy_dtype(DType dtype);

// The value as a message shows it: short, whatever its class says of itself.
std::string shown(const pybind11::handle& value);

void set_from_python(AttrDraft& draft, std::string_view op_name, const AttrSpec& spec,
                     const pybind11::handle& value);
pybind11::object python_from_attr(const AttrView& value);

// (2, None): None where the number of examples decides.
pybind11::tuple shape_tuple(const Shape& shape);

}  // namespace samegrad
