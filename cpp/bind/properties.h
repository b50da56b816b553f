// What is asked of tensors most often.
#pragma once

#include <pybind11/pybind11.h>

namespace samegrad {

// Answers these properties of the class without pybind11's dispatch; it is there for objects whose
// constructor has not run.
void shorten_properties(const pybind11::object& tensor_class);

}  // namespace samegrad
