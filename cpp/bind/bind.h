// One function per layer registers what Python sees of it.
#pragma once

#include <pybind11/pybind11.h>

#include "bind/tensor_caster.h"

namespace samegrad {

void register_errors(pybind11::module_& m);
void register_tensor(pybind11::module_& m);
void register_ops(pybind11::module_& m);
void register_control(pybind11::module_& m);
void register_custom_gradient(pybind11::module_& m);
void register_arguments(pybind11::module_& m);
void register_train(pybind11::module_& m);
void register_trace(pybind11::module_& m);
void register_record(pybind11::module_& m);
void register_saved(pybind11::module_& m);
void register_feed(pybind11::module_& m);
void register_elements(pybind11::module_& m);
void register_scopes(pybind11::module_& m);
void register_transaction(pybind11::module_& m);
void register_runtime(pybind11::module_& m);
void register_world(pybind11::module_& m);

}  // namespace samegrad
