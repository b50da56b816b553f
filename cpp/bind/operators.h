// Python's operators on tensors.
#pragma once

#include <pybind11/pybind11.h>

namespace samegrad {

void register_operators(pybind11::module_& m);

}  // namespace samegrad
