#include <pybind11/stl.h>

#include "bind/bind.h"
#include "runtime/interrupt.h"
#include "train/control.h"

namespace py = pybind11;

namespace samegrad {
namespace {

TensorFunction to_function(const py::function& function) {
  return [function](const std::vector<Tensor>& arguments) {
    py::tuple args(arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) args[i] = py::cast(arguments[i]);
    const py::object result = function(*args);
    if (py::isinstance<Tensor>(result)) return std::vector{py::cast<Tensor>(result)};
    return py::cast<std::vector<Tensor>>(result);
  };
}

}  // namespace

void register_control(py::module_& m) {
  m.def(
      "traced_cond",
      [](const Tensor& condition, const py::function& true_fn, const py::function& false_fn) {
        return traced_cond(condition, to_function(true_fn), to_function(false_fn));
      },
      py::arg("condition"), py::arg("true_fn"), py::arg("false_fn"));
  m.def(
      "traced_while",
      [](const py::function& condition, const py::function& body,
         const std::vector<Tensor>& variables, std::int64_t maximum) {
        return traced_while(to_function(condition), to_function(body), variables, maximum);
      },
      py::arg("condition"), py::arg("body"), py::arg("variables"), py::arg("maximum"));
  m.def(
      "traced_scan",
      [](const py::function& body, const std::vector<Tensor>& rows,
         const std::vector<Tensor>& variables,
         bool reverse) { return traced_scan(to_function(body), rows, variables, reverse); },
      py::arg("body"), py::arg("rows"), py::arg("variables"), py::arg("reverse"));
  // Ctrl-C between the iterations of a loop.
  set_interrupt_check([] {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  });
}

}  // namespace samegrad
