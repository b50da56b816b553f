// Elements of datasets that functions of the host and programs make, several at a time.
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "bind/bytes.h"
#include "bind/convert.h"
#include "bind/python_host.h"
#include "data/decoded_image.h"
#include "data/host_function.h"
#include "data/resize.h"
#include "tensor/non_addressable.h"
#include "train/map_function.h"

namespace py = pybind11;

namespace samegrad {
namespace {

struct HostFunctionHandle {
  HostFunctionPtr function;
};

// The source of a component of a made element.
struct Component {
  enum class Kind { kProgram, kHost, kConstant };
  Kind kind = Kind::kProgram;
  std::size_t number = 0;
  py::object constant;
};

// An element's values as Python gave them, and as the engine takes them.
struct Element {
  std::uint64_t position = 0;
  py::tuple given;
  bool fits = false;
  MapFunction::Made made;
};

class ElementMapper {
 public:
  // `leaves`: of each leaf of an element its dtype and shape; None: text without axes. `values`:
  // how many there are, the leaves first; `calls`: (function, from, to) each.
  ElementMapper(const py::sequence& leaves, std::size_t values, const py::sequence& calls,
                std::vector<std::size_t> arguments, const py::sequence& programs,
                const py::sequence& components)
      : values_(values),
        calls_(calls_of(calls)),
        arguments_(arguments),
        program_(python_host, calls_, std::move(arguments), programs_of(programs)) {
    for (const py::handle leaf : leaves) {
      leaves_.push_back(leaf.is_none() ? std::nullopt : std::optional(type_of(leaf)));
    }
    for (const py::handle item : components) components_.push_back(component_of(item));
  }

  // Makes elements from (position, values) pairs. `values` is a tuple of the leaves and Python's
  // results, with None for results of calls. Returns a tuple of components per element, or None
  // where Python has to make the element.
  py::list make(std::uint64_t seed, const py::sequence& taken) const {
    std::vector<Element> elements;
    elements.reserve(taken.size());
    for (const py::handle item : taken) elements.push_back(read(item));
    {
      const py::gil_scoped_release release;
      for (Element& element : elements) {
        if (element.fits) element.fits = try_to_make(seed, element);
      }
    }
    py::list results;
    for (const Element& element : elements) {
      results.append(element.fits ? py::object(components_of(element)) : py::none());
    }
    return results;
  }

 private:
  using Type = std::pair<DType, Shape>;

  static Type type_of(py::handle item) {
    const auto [dtype, shape] = py::cast<std::pair<std::string, std::vector<std::int64_t>>>(item);
    return {dtype_from_name(dtype), Shape(shape)};
  }

  static std::vector<MapFunction::HostCall> calls_of(const py::sequence& given) {
    std::vector<MapFunction::HostCall> calls;
    for (const py::handle item : given) {
      const auto [function, from, to] =
          py::cast<std::tuple<HostFunctionHandle, std::size_t, std::size_t>>(item);
      calls.push_back({function.function, from, to});
    }
    return calls;
  }

  static std::vector<MapFunction::TypedStep> programs_of(const py::sequence& given) {
    std::vector<MapFunction::TypedStep> programs;
    for (const py::handle item : given) {
      const auto [types, step] =
          py::cast<std::pair<py::list, std::shared_ptr<CompiledFunction>>>(item);
      MapFunction::Types known;
      for (const py::handle type : types) known.push_back(type_of(type));
      programs.push_back({std::move(known), step});
    }
    return programs;
  }

  static Component component_of(py::handle item) {
    const auto [name, what] = py::cast<std::pair<std::string, py::object>>(item);
    if (name == "constant") return {Component::Kind::kConstant, 0, what};
    const auto kind = name == "program" ? Component::Kind::kProgram : Component::Kind::kHost;
    return {kind, py::cast<std::size_t>(what), {}};
  }

  Element read(py::handle item) const {
    const auto pair = py::reinterpret_borrow<py::tuple>(item);
    const py::object given = pair[1];
    Element element;
    element.position = py::cast<std::uint64_t>(pair[0]);
    if (!py::isinstance<py::tuple>(given)) return element;  // of another structure
    element.given = py::reinterpret_borrow<py::tuple>(given);
    element.made.values.resize(values_);
    try {
      element.fits =
          element.given.size() <= values_ && leaves_fit(element.given) && read_values(element);
    } catch (const std::exception&) {  // a leaf of another kind
      element.fits = false;
    }
    return element;
  }

  bool leaves_fit(const py::tuple& given) const {
    if (given.size() < leaves_.size()) return false;
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const py::handle leaf = given[i];
      if (py::isinstance<Tensor>(leaf) != leaves_[i].has_value()) return false;
      if (!leaves_[i]) continue;
      const Array& array = concrete(py::cast<const Tensor&>(leaf), "Dataset.map");
      if (array.dtype() != leaves_[i]->first || array.shape() != leaves_[i]->second) return false;
    }
    return true;
  }

  // Reads the values that calls and programs take of Python.
  bool read_values(Element& element) const {
    for (const auto& call : calls_) {
      if (!read_value(element, call.from)) return false;
    }
    return std::ranges::all_of(arguments_, [&](std::size_t n) { return read_value(element, n); });
  }

  bool read_value(Element& element, std::size_t number) const {
    if (number >= element.given.size()) return true;
    const py::handle value = element.given[number];
    if (value.is_none()) return true;
    HostValue& to = element.made.values[number];
    if (py::isinstance<Tensor>(value)) {
      to = concrete(py::cast<const Tensor&>(value), "Dataset.map");
      return true;
    }
    if (py::cast<int>(value.attr("_rank")) != 0) return false;
    to = std::string(py::cast<std::string_view>(value.attr("_item")()));
    return true;
  }

  // On any error, Python makes the same element and raises the error.
  bool try_to_make(std::uint64_t seed, Element& element) const {
    try {
      return program_.make(seed, element.position, element.made);
    } catch (const std::exception&) {
      return false;
    }
  }

  py::tuple components_of(const Element& element) const {
    py::tuple made(components_.size());
    for (std::size_t i = 0; i < components_.size(); ++i) {
      const Component& component = components_[i];
      if (component.kind == Component::Kind::kConstant) {
        made[i] = component.constant;
      } else if (component.kind == Component::Kind::kProgram) {
        made[i] = make_tensor(element.made.outputs[component.number]);
      } else {
        made[i] = host_value(element, component.number);
      }
    }
    return made;
  }

  static py::object host_value(const Element& element, std::size_t number) {
    if (number < element.given.size()) {
      const py::object given = element.given[number];
      if (!given.is_none()) return given;
    }
    return py::cast(make_tensor(std::get<Array>(element.made.values[number])));
  }

  std::size_t values_;
  std::vector<std::optional<Type>> leaves_;
  std::vector<MapFunction::HostCall> calls_;
  std::vector<std::size_t> arguments_;
  MapFunction program_;
  std::vector<Component> components_;
};

// Images of other rows and columns; None where the operation is recorded, or is not one for this.
py::object resize_images(const Tensor& images, std::int64_t rows, std::int64_t columns) {
  const int axis = images.type.batch.axis;
  if (current_trace() || images.symbolic() || is_non_addressable(images.array)) return py::none();
  const Array& array = images.array;
  const int rank = array.shape().rank();
  if (!has_images(array) || axis > rank - 4) return py::none();
  constexpr std::int64_t kLong = 1 << 16;  // numbers for which other threads of Python go on
  const std::int64_t channels = array.shape()[rank - 1];
  Array result;
  if (std::max(array.size(), size_product(size_product(rows, columns), channels)) < kLong) {
    result = resized_bilinear(array, rows, columns);
  } else {
    const py::gil_scoped_release release;
    result = resized_bilinear(array, rows, columns);
  }
  return py::cast(make_tensor(result, images.type.batch));
}

py::object pixels_of_file(const py::bytes& file, std::int64_t channels, std::int64_t most_pixels,
                          bool deep) {
  const std::span<const std::uint8_t> bytes = bytes_of(file);
  std::optional<Array> pixels;
  {
    const py::gil_scoped_release release;
    pixels = decoded_image(bytes, {channels, most_pixels, deep});
  }
  return pixels ? py::cast(make_tensor(*pixels)) : py::none();
}

}  // namespace

void register_elements(py::module_& m) {
  py::class_<HostFunctionHandle>(m, "HostFunction")
      .def_static("read_file", [] { return HostFunctionHandle{read_file()}; })
      .def_static(
          "decode_image",
          [](std::int64_t channels, std::int64_t most_pixels) {
            return HostFunctionHandle{decode_image({channels, most_pixels, false})};
          },
          py::arg("channels"), py::arg("most_pixels"))
      .def_static(
          "resize_bilinear",
          [](std::int64_t rows, std::int64_t columns) {
            return HostFunctionHandle{resize_bilinear(rows, columns)};
          },
          py::arg("rows"), py::arg("columns"));
  py::class_<ElementMapper>(m, "ElementMaker")
      .def(py::init<const py::sequence&, std::size_t, const py::sequence&, std::vector<std::size_t>,
                    const py::sequence&, const py::sequence&>(),
           py::arg("leaves"), py::arg("values"), py::arg("calls"), py::arg("arguments"),
           py::arg("programs"), py::arg("components"))
      .def("make", &ElementMapper::make, py::arg("seed"), py::arg("taken"));
  m.def("resize_images", &resize_images, py::arg("images"), py::arg("rows"), py::arg("columns"));
  m.def("pixels_of_file", &pixels_of_file, py::arg("file"), py::arg("channels"),
        py::arg("most_pixels"), py::arg("deep"));
}

}  // namespace samegrad
