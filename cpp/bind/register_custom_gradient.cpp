#include <pybind11/stl.h>

#include "bind/bind.h"
#include "train/trace.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// A list of tensors and Nones; or, as text and number, the error that it is to be.
Trace::GradientFunction to_gradient(const py::function& function) {
  return [function](const std::vector<Tensor>& cts) {
    py::tuple args(cts.size());
    for (std::size_t i = 0; i < cts.size(); ++i) args[i] = py::cast(cts[i]);
    const py::object result = function(*args);
    Trace::Gradients made;
    if (py::isinstance<py::tuple>(result)) {
      const auto error = py::cast<std::pair<int, std::string>>(result);
      made.error.emplace(ErrorKind(error.first), error.second);
    } else {
      made.of_operands = py::cast<std::vector<std::optional<Tensor>>>(result);
    }
    return made;
  };
}

std::vector<Tensor> with_gradient(const std::vector<Tensor>& values,
                                  const std::vector<Tensor>& operands,
                                  const py::function& gradient) {
  const std::shared_ptr<Trace> trace = current_trace();
  if (!trace) return values;
  Values lifted, given;
  for (const Tensor& value : values) lifted.push_back(trace->lift(value));
  for (const Tensor& operand : operands) given.push_back(trace->lift(operand));
  std::vector<Tensor> results;
  for (Value value : trace->with_gradient(lifted, given, to_gradient(gradient))) {
    results.push_back(trace->tensor(value));
  }
  return results;
}

}  // namespace

void register_custom_gradient(py::module_& m) {
  m.def("with_gradient", with_gradient, py::arg("values"), py::arg("operands"),
        py::arg("gradient"));
  m.def("count_reads", [] {
    const std::shared_ptr<Trace> trace = current_trace();
    return trace ? trace->variables().count_reads() : 0;
  });
  m.def(
      "reads_since",
      [](std::size_t first) {
        const std::shared_ptr<Trace> trace = current_trace();
        py::list reads;
        if (!trace) return reads;
        const auto& counted = trace->variables().counted();
        for (std::size_t i = first; i < counted.size(); ++i) reads.append(py::cast(counted[i]));
        return reads;
      },
      py::arg("first"));
  m.def("draws", []() -> std::optional<std::tuple<std::uint64_t, bool, std::int64_t>> {
    const std::shared_ptr<Trace> trace = current_trace();
    if (!trace) return std::nullopt;
    const DrawState& draws = trace->draws();
    return std::tuple(draws.step, draws.drew, draws.ordinal);
  });
  m.def(
      "set_draws",
      [](const std::tuple<std::uint64_t, bool, std::int64_t>& draws) {
        const auto& [step, drew, ordinal] = draws;
        if (const auto trace = current_trace()) trace->draws() = {step, drew, ordinal};
      },
      py::arg("draws"));
}

}  // namespace samegrad
