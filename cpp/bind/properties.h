// Frequent properties of tensors, bound without pybind11.
#pragma once

#include <pybind11/pybind11.h>

#include "bind/tensor_caster.h"

namespace samegrad {

// Pybind11's own are there for Python's subclasses, and for objects whose constructor has not run.
void register_properties(pybind11::class_<Tensor>& tensor_class);

}  // namespace samegrad
