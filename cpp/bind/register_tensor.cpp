#include <pybind11/stl.h>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/look.h"
#include "ir/placement.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// The one element, exactly: int64 does not fit into a double.
py::object number(const Array& array) {
  if (array.dtype() == DType::kBool) return py::bool_(array.data<bool>()[0]);
  if (array.dtype() == DType::kInt64) return py::int_(array.data<std::int64_t>()[0]);
  if (is_floating(array.dtype())) return py::float_(element(array, 0));
  return py::int_(std::int64_t(element(array, 0)));
}

py::object example_axis(const Tensor& tensor) {
  if (!tensor.type.batched()) return py::none();
  return py::make_tuple(tensor.type.batch.axis, tensor.type.batch.rows_per_example);
}

// The size at hand; the program is bound to it from now on.
std::int64_t fix_size(const Tensor& tensor, int axis) {
  const std::int64_t dim = tensor.type.shape[axis];
  if (dim != kRows) return dim;
  const ExampleAxis& batch = tensor.type.batch;
  return batch.rows_per_example * tensor.trace->fix_count(batch.symbol);
}

}  // namespace

void register_tensor(py::module_& m) {
  py::class_<Tensor>(m, "Tensor", py::dynamic_attr())
      .def(py::init(
               [](const py::array& array, bool copy, std::optional<int> axis, std::int64_t rows) {
                 ExampleAxis batch;
                 if (axis) batch = {*axis, rows, 0};
                 return make_tensor(array_from_numpy(array, copy), batch);
               }),
           py::arg("array"), py::arg("copy") = true, py::arg("example_axis") = py::none(),
           py::arg("rows_per_example") = 1)
      .def_property_readonly("_shape", [](const Tensor& t) { return shape_tuple(t.type.shape); })
      .def_property_readonly("_dtype", [](const Tensor& t) { return name_of(t.type.dtype); })
      .def_property_readonly("_rank", [](const Tensor& t) { return t.type.shape.rank(); })
      .def_property_readonly("_symbolic", &Tensor::symbolic)
      .def_property_readonly(
          "_varying",
          [](const Tensor& t) { return t.symbolic() && t.trace->program().varying(t.value); })
      // Whether the sum of the replicas' values is rounded otherwise than what one device computes,
      // and what it computes can be had beside them (rounds carry the one or the other).
      .def_property_readonly("_function_of_sums",
                             [](const Tensor& t) {
                               if (!t.symbolic()) return false;
                               const Graph& graph = t.trace->program();
                               return is_function_of_sums(graph, t.value) &&
                                      !comes_through_control(graph, t.value);
                             })
      .def_property_readonly("_example_axis", &example_axis)
      // Whether the tape that is recording knows it: a copy of it would not get gradients.
      .def_property_readonly("_recorded",
                             [](const Tensor& t) {
                               const auto trace = current_trace();
                               return trace != nullptr && t.recorded.lock() == trace;
                             })
      // Whether its step was given what it needs to look at values while it is traced.
      .def_property_readonly("_looks",
                             [](const Tensor& t) { return t.symbolic() && t.trace->looks(); })
      // Its values: one, or one per replica where they differ.
      .def(
          "_look",
          [](const Tensor& t, bool anywhere) {
            ExampleAxis batch = t.type.batch;
            batch.symbol = 0;
            py::list parts;
            for (const Array& array : look(t, "Tensor", anywhere)) {
              parts.append(make_tensor(array, batch));
            }
            return parts;
          },
          py::arg("anywhere") = false)
      .def("_fix_size", &fix_size)
      .def("_numpy", [](const Tensor& t) { return numpy_from_array(known(t, "Tensor.numpy")); })
      .def("_view", [](const Tensor& t) { return numpy_view(known(t, "Tensor")); })
      .def("_item",
           [](const Tensor& t) {
             const Array array = known(t, "Tensor");
             check_type(array.size() == 1, "Tensor",
                        "only a tensor of one element is a number: got shape ",
                        to_string(array.shape()), ".");
             return py::object(number(array));
           })
      .def("_as_examples",
           [](const Tensor& t, int axis, std::int64_t rows) {
             return make_tensor(concrete(t, "Tensor"), {axis, rows, 0});
           })
      // Examples on this replica and on all of them while a function is traced, as far as known.
      .def_property_readonly(
          "_traced_examples",
          [](const Tensor& t) -> std::optional<std::pair<std::int64_t, std::int64_t>> {
            if (!t.symbolic() || !t.type.batched()) return std::nullopt;
            const Symbol& symbol = t.trace->program().symbols[std::size_t(t.type.batch.symbol)];
            if (symbol.traced_total < 0) return std::nullopt;
            return std::pair(symbol.traced_count, symbol.traced_total);
          })
      .def(
          "_of_counts",
          [](Tensor t, int examples, int replicas) {
            t.counts = CountPowers{0, std::int8_t(examples), std::int8_t(replicas)};
            return t;
          },
          py::arg("examples"), py::arg("replicas"))
      .def("_as_plain", [](const Tensor& t) { return make_tensor(concrete(t, "Tensor")); });
}

}  // namespace samegrad
