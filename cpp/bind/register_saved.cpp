// Programs of saved models: from traces to plain data, and back into traces.
#include <pybind11/stl.h>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/saved_graph.h"
#include "train/replay_program.h"
#include "train/traced_programs.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// The data, the arrays that it names, and the variables by its slots.
py::tuple export_program(const TracedPrograms& traced, const std::string& op_name) {
  const Program& program = traced.only();
  std::vector<Array> constants;
  const py::dict data = data_of_graph(program.graph, constants, op_name);
  py::list arrays, variables;
  for (const Array& array : constants) arrays.append(make_tensor(array));
  for (const std::shared_ptr<StateCell>& cell : program.variables) {
    variables.append(std::dynamic_pointer_cast<Variable>(cell));
  }
  return py::make_tuple(data, arrays, variables);
}

std::vector<Array> arrays_of(const std::vector<Tensor>& tensors) {
  std::vector<Array> arrays;
  for (const Tensor& tensor : tensors) arrays.push_back(concrete(tensor, kSavedModel));
  return arrays;
}

std::vector<Tensor> replay(const std::shared_ptr<const Graph>& program,
                           const std::vector<Tensor>& arguments,
                           const std::vector<std::shared_ptr<Variable>>& variables) {
  return replay_program(*traced_graph(kSavedModel), *program, arguments, variables);
}

// One function of a saved model.
struct SavedProgram {
  std::shared_ptr<const Graph> graph;
};

}  // namespace

void register_saved(py::module_& m) {
  m.def("export_program", &export_program, py::arg("traced"), py::arg("op_name"));
  py::class_<SavedProgram>(m, "SavedProgram")
      .def(py::init([](const py::dict& data, const std::vector<Tensor>& constants) {
             return SavedProgram{
                 std::make_shared<const Graph>(graph_from_data(data, arrays_of(constants)))};
           }),
           py::arg("data"), py::arg("constants"))
      .def_property_readonly("arguments",
                             [](const SavedProgram& p) { return p.graph->arguments.size(); })
      .def_property_readonly("outputs",
                             [](const SavedProgram& p) { return p.graph->outputs.size(); })
      .def_property_readonly("variables",
                             [](const SavedProgram& p) { return p.graph->variables.size(); })
      .def("__str__", [](const SavedProgram& p) { return to_string(*p.graph); })
      .def(
          "replay",
          [](const SavedProgram& p, const std::vector<Tensor>& arguments,
             const std::vector<std::shared_ptr<Variable>>& variables) {
            return replay(p.graph, arguments, variables);
          },
          py::arg("arguments"), py::arg("variables"));
}

}  // namespace samegrad
