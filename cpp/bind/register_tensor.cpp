#include <pybind11/stl.h>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/calls.h"
#include "bind/convert.h"
#include "bind/evaluate.h"
#include "bind/operators.h"
#include "bind/properties.h"
#include "ir/placement.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// The one element, exactly: int64 does not fit into a double.
py::object number(const Array& array) {
  return visit(array.dtype(), [&]<class T>() -> py::object {
    const T value = *array.data<T>();
    if constexpr (kIsOneOf<T, kBools>) {
      return py::bool_(value);
    } else if constexpr (kIsOneOf<T, kFloats>) {
      return py::float_(double(value));
    } else {
      return py::int_(value);
    }
  });
}

// The symbols of what is being traced.
Symbols& symbols() {
  const std::shared_ptr<Trace> trace = current_trace();
  if (!trace) {
    fail(ErrorKind::kRuntime, "Dim",
         "this size belongs to a function that is no longer traced: return tf.shape(x) from it.");
  }
  return trace->graph().symbols;
}

// The answer to a question about counts, after which the trace may keep fewer replicas.
template <class T>
T answered(T answer) {
  current_trace()->note_split();
  return answer;
}

Size size(std::int64_t dim) {
  if (is_symbolic(dim) && std::size_t(dim - kSymbols) >= symbols().size()) {
    fail(ErrorKind::kRuntime, "Dim",
         "this size belongs to a function that is not traced here: use it there.");
  }
  return size_of(symbols(), dim);
}

// The number of times that b goes into a.
std::int64_t size_quotient(std::int64_t a, std::int64_t b) {
  SG_CHECK_VALUE(b > 0, "Dim", "a size is divided by numbers above 0: got ", b, ".");
  if (const auto exact = size(a).over(b)) return dim_of(symbols(), *exact);
  Symbol quotient;
  quotient.kind = Symbol::Kind::kQuotient;
  quotient.parts = {int(dim_of(symbols(), size(a)) - kSymbols)};
  quotient.step = b;
  return kSymbols + derived_symbol(symbols(), std::move(quotient));
}

bool size_holds(const std::string& relation, std::int64_t a, std::int64_t b) {
  const Size difference = size(a) - size(b);
  const auto ask = [&](bool (*holds)(std::int64_t)) {
    return answered(decide(symbols(), difference, holds));
  };
  if (relation == "eq") return ask([](std::int64_t n) { return n == 0; });
  if (relation == "lt") return ask([](std::int64_t n) { return n < 0; });
  if (relation == "le") return ask([](std::int64_t n) { return n <= 0; });
  if (relation == "gt") return ask([](std::int64_t n) { return n > 0; });
  return ask([](std::int64_t n) { return n >= 0; });
}

// Arithmetic on sizes of a trace: numbers, and symbols as shapes hold them.
void register_sizes(py::module_& m) {
  m.def("size_known", [](std::int64_t dim) { return !is_symbolic(dim); });
  // True if the size follows from lengths alone, which are the same on all replicas.
  m.def("size_of_lengths", [](std::int64_t dim) {
    const auto trace = current_trace();
    if (!trace || !is_symbolic(dim)) return false;
    const Symbols& known = trace->graph().symbols;
    return std::size_t(dim - kSymbols) < known.size() && follows_lengths(known, dim);
  });
  m.def("size_add",
        [](std::int64_t a, std::int64_t b) { return dim_of(symbols(), size(a) + size(b)); });
  m.def("size_sub",
        [](std::int64_t a, std::int64_t b) { return dim_of(symbols(), size(a) - size(b)); });
  m.def("size_mul",
        [](std::int64_t a, std::int64_t b) { return dim_of(symbols(), size(a) * size(b)); });
  m.def("size_floordiv", &size_quotient);
  m.def("size_holds", &size_holds, py::arg("relation"), py::arg("a"), py::arg("b"));
  // The number at hand; the program is bound to it from now on, and to the replicas that have it.
  m.def("size_bind", [](std::int64_t dim) { return answered(bound_size(symbols(), size(dim))); });
}

}  // namespace

void register_tensor(py::module_& m) {
  register_sizes(m);
  register_operators(m);
  py::class_<Tensor> cls(m, "Tensor", py::dynamic_attr());
  tensor_class = reinterpret_cast<PyTypeObject*>(cls.ptr());
  cls.def(py::init(
              [](const py::array& array, bool copy, std::optional<int> axis, std::int64_t rows) {
                ExampleAxis batch;
                if (axis) batch = {*axis, rows, 0};
                return make_tensor(array_from_numpy(array, copy), batch);
              }),
          py::arg("array"), py::arg("copy") = true, py::arg("example_axis") = py::none(),
          py::arg("rows_per_example") = 1)
      // True if the constructor has run, so that there is a value to show.
      .def_property_readonly("_made", [](const py::object& self) { return is_made(self); })
      .def_property_readonly(
          "_varying",
          [](const Tensor& t) { return t.symbolic() && t.trace->program().varying(t.value); })
      // Tells if it is a replica's part of a sum over the examples of all: the sum of the parts is
      // rounded otherwise than what one device computes.
      .def_property_readonly("_partial",
                             [](const Tensor& t) {
                               if (!t.symbolic()) return false;
                               const Graph& graph = t.trace->program();
                               return graph.placement(t.value) == Placement::kPartial &&
                                      is_floating(t.type.dtype);
                             })
      // Its values: one, or one per replica where they differ.
      .def(
          "_look",
          [](const Tensor& t, bool anywhere) {
            ExampleAxis batch = t.type.batch;
            batch.symbol = 0;
            py::list parts;
            for (const Array& array : evaluate(t, "Tensor", anywhere)) {
              parts.append(make_tensor(array, batch));
            }
            return parts;
          },
          py::arg("anywhere") = false)
      // A size as `_core.sizes` takes it.
      .def("_dim",
           [](const Tensor& t, int axis) {
             if (!t.symbolic()) return t.array.shape()[axis];
             const bool counted = t.type.batch.axis == axis;
             if (!counted) return t.type.shape[axis];
             if (const auto trace = current_trace()) trace->check_inside(t);
             return dim_of(symbols(), size_of(symbols(), t.type, axis));
           })
      .def("_numpy", [](const Tensor& t) { return numpy_from_array(known(t, "Tensor.numpy")); })
      .def("_view", [](const Tensor& t) { return numpy_view(known(t, "Tensor")); })
      .def("_item",
           [](const Tensor& t) {
             const Array array = known(t, "Tensor");
             SG_CHECK_TYPE(array.size() == 1, "Tensor",
                           "only a tensor of one element is a number: got shape ",
                           to_string(array.shape()), ".");
             return py::object(number(array));
           })
      .def("_as_examples",
           [](const Tensor& t, int axis, std::int64_t rows) {
             return make_tensor(wherever(t, "Tensor"), {axis, rows, 0});
           })
      // Examples on this replica and on all of them while a function is traced, as far as known.
      .def_property_readonly(
          "_traced_examples",
          [](const Tensor& t) -> std::optional<std::pair<std::int64_t, std::int64_t>> {
            if (!t.symbolic() || !t.type.batched()) return std::nullopt;
            const Symbols& symbols = t.trace->program().symbols;
            const auto at = std::size_t(t.type.batch.symbol);
            if (symbols[at].traced_total < 0) return std::nullopt;
            return std::pair(traced_counts(symbols)[0][at], symbols[at].traced_total);
          })
      .def(
          "_of_counts",
          [](Tensor t, int examples, int replicas) {
            t.counts = CountPowers{0, std::int8_t(examples), std::int8_t(replicas)};
            return t;
          },
          py::arg("examples"), py::arg("replicas"))
      .def("_as_plain", [](const Tensor& t) { return make_tensor(concrete(t, "Tensor")); });
  register_properties(cls);
}

}  // namespace samegrad
