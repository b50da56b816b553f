#include "bind/arguments.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <pybind11/stl.h>

#include "base/error.h"
#include "bind/convert.h"
#include "bind/per_replica_batch.h"
#include "train/eager_trace.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// Stands for an object that cannot be hashed, and keeps it: its address stays its own.
struct ByIdentity {
  py::object object;
};

// RecursionError, instead of the end of the process, where containers are nested too deep.
class Depth {
 public:
  Depth() {
    if (Py_EnterRecursiveCall(" while reading the arguments of a samegrad.function")) {
      throw py::error_already_set();
    }
  }
  ~Depth() { Py_LeaveRecursiveCall(); }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
};

const py::object& per_replica_type() {
  static constinit Imported type("samegrad._tensor.per_replica", "PerReplica");
  return type.get();
}

bool is_mapping(const py::handle& value) {
  static constinit Imported mapping("collections.abc", "Mapping");
  return PyDict_Check(value.ptr()) || py::isinstance(value, mapping.get());
}

// The tensor that a Python object is, or null. The type is looked up once: there may be many.
const Tensor* tensor_in(const py::handle& value) {
  static const py::detail::type_info* const type = py::detail::get_type_info(typeid(Tensor));
  if (!PyObject_TypeCheck(value.ptr(), type->type)) return nullptr;
  py::detail::type_caster_generic caster(type);
  if (!caster.load(value, false) || !is_made(value)) return nullptr;
  return static_cast<const Tensor*>(caster.value);
}

bool is_text(const py::handle& value) {
  static constinit Imported text("samegrad._tensor.text", "Text");
  return py::isinstance(value, text.get());
}

// PerReplica's. Python finds attributes fast by names that it keeps itself.
py::object parts_of(const py::handle& value) {
  static PyObject* const name = PyUnicode_InternFromString("_parts");
  return value.attr(py::handle(name));
}

class Reader {
 public:
  explicit Reader(const std::vector<std::uint32_t>& lengths) : lengths_(lengths) {
    key_.reserve(kUsualKeyBytes);
  }

  void read(const py::handle& value) {
    PyObject* const p = value.ptr();
    if (const Tensor* tensor = tensor_in(value)) return read_tensor(*tensor);
    if (PyTuple_Check(p) || PyList_Check(p)) return read_sequence(value);
    if (p == Py_None) return mark('n');
    if (PyBool_Check(p)) return mark(p == Py_True ? '1' : '0');
    if (PyFloat_CheckExact(p)) return append('f', PyFloat_AS_DOUBLE(p));
    if (Py_TYPE(p) == reinterpret_cast<PyTypeObject*>(per_replica_type().ptr())) {
      return read_parts(value);
    }
    if (PyDict_CheckExact(p)) return read_mapping(value);
    if (py::isinstance<py::array>(value) || is_numpy_number(value)) return read_numpy(value);
    if (is_mapping(value)) return read_mapping(value);
    read_object(value);
  }

  Arguments finish() {
    py::object key = py::bytes(key_);
    if (!objects_.empty()) key = py::make_tuple(key, py::tuple(objects_));
    result_.key = std::move(key);
    return std::move(result_);
  }

 private:
  static bool is_numpy_number(const py::handle& value) {
    static constinit Imported generic("numpy", "generic");
    return py::isinstance(value, generic.get());
  }

  static constexpr std::size_t kUsualKeyBytes = 256;  // of a few arrays

  void mark(char c) { key_.push_back(c); }
  template <class T>
  void append(char tag, const T& number) {
    std::array<char, 1 + sizeof number> piece{tag};
    std::memcpy(piece.data() + 1, &number, sizeof number);
    key_.append(piece.data(), piece.size());
  }

  void append_type(const Array& array, const ExampleAxis& batch) {
    append('T', array.dtype());
    append('r', array.shape().rank());
    append('b', batch.exists() ? batch.rows_per_example * kMaxRank + batch.axis : -1);
    for (int axis = 0; axis < array.shape().rank(); ++axis) {
      const std::int64_t size = array.shape()[axis];
      if (batch.exists() && axis == batch.axis) continue;
      if (is_open(axis)) {
        mark('v');
        result_.lengths.append(reinterpret_cast<const char*>(&size), sizeof size);
        result_.open.emplace_back(int(result_.arrays.size()), axis);
      } else {
        append('d', size);
      }
    }
  }

  // True if the axis of the argument being added is a dynamic dimension.
  bool is_open(int axis) const {
    const std::size_t at = result_.arrays.size();
    return at < lengths_.size() && (lengths_[at] >> axis & 1u);
  }

  void append_sizes(const Array& array) {
    for (const std::int64_t size : array.shape()) {
      result_.sizes.append(reinterpret_cast<const char*>(&size), sizeof size);
    }
  }

  // Appends which arguments have the counts of an earlier one; that pattern belongs to the program.
  void append_pattern(const PerReplica<Array>& arrays, const ExampleAxis& batch) {
    ExampleCounts counts = counts_of(arrays.values(), batch);
    const auto same = std::ranges::find_if(
        counts_, [&](const ExampleCounts& known) { return same_counts(known, counts); });
    append('=', same - counts_.begin());
    if (same == counts_.end()) counts_.push_back(std::move(counts));
  }

  void add(PerReplica<Array> arrays, const ExampleAxis& batch) {
    append_type(arrays[0], batch);
    if (batch.exists()) append_pattern(arrays, batch);
    for (const Array& array : arrays) append_sizes(array);
    result_.arrays.push_back(std::move(arrays));
  }

  // Caches the tensors of the argument being added for an eager tape that records.
  void keep(PerReplica<Tensor> tensors) { result_.tensors.push_back(std::move(tensors)); }

  // A copy that the trace knows as the tensor itself.
  static Tensor named(const Tensor& tensor) {
    (void)current_trace()->lift(tensor);
    return tensor;
  }

  void read_tensor(const Tensor& tensor) {
    if (recorded_) keep({named(tensor)});
    add({concrete(tensor, "function")}, tensor.type.batch);
  }

  void read_numpy(const py::handle& value) {
    const py::array array = py::array::ensure(value);
    // The step only reads it, and copies what it returns.
    const Array read = array_from_numpy(array, false);
    if (recorded_) keep({make_tensor(read)});
    add({read}, {});
  }

  // Strings per replica: the next ones of as many replicas fit the same program.
  void read_strings(const py::handle& value, std::size_t replicas) {
    append('S', replicas);
    result_.replicas = std::max(result_.replicas, int(replicas));
    result_.strings.append(value);
  }

  void read_parts(const py::handle& value) {
    const py::object parts = parts_of(value);
    PerReplica<Array> arrays;
    PerReplica<Tensor> tensors;
    ExampleAxis batch;
    if (py::isinstance<PerReplicaBatch>(parts)) {
      const auto& rows = py::cast<const PerReplicaBatch&>(parts);
      for (std::size_t r = 0; r < rows.size(); ++r) arrays.push_back(rows.part(r));
      batch = {0, 1, 0};
      for (const Array& array : arrays) {
        if (recorded_) tensors.push_back(make_tensor(array, batch));
      }
    } else {
      for (const py::handle part : parts) {
        const Tensor* tensor = tensor_in(part);
        if (!tensor && is_text(part)) return read_strings(value, py::len(parts));
        if (!tensor) {
          fail(ErrorKind::kType, "PerReplica", "the parts must be tensors to enter a step: got ",
               std::string(py::str(py::type::of(part).attr("__name__"))),
               "; use samegrad.constant(...).");
        }
        if (arrays.empty()) batch = tensor->type.batch;
        arrays.push_back(wherever(*tensor, "function"));
        if (recorded_) tensors.push_back(named(*tensor));
      }
    }
    SG_CHECK_VALUE(!arrays.empty(), "PerReplica", "needs a part for each replica: got none.");
    append('P', arrays.size());
    result_.replicas = std::max(result_.replicas, int(arrays.size()));
    if (recorded_) keep(std::move(tensors));
    add(std::move(arrays), batch);
  }

  void read_sequence(const py::handle& value) {
    const Depth depth;
    PyObject* const p = value.ptr();
    const bool plain = PyTuple_CheckExact(p) || PyList_CheckExact(p);
    if (!plain) read_object(py::type::of(value));  // a named tuple
    append(PyTuple_Check(p) ? 't' : 'l', PySequence_Fast_GET_SIZE(p));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(p); ++i) {
      read(PySequence_Fast_GET_ITEM(p, i));
    }
  }

  // By sorted keys, as the Python side walks them.
  void read_mapping(const py::handle& value) {
    const Depth depth;
    if (!PyDict_CheckExact(value.ptr())) read_object(py::type::of(value));
    const py::list keys(value.attr("keys")());
    if (keys.size() > 1) sort(keys);
    append('d', keys.size());
    for (const py::handle key : keys) {
      read_object(key);
      read(value[key]);
    }
  }

  static void sort(const py::list& keys) {
    try {
      keys.attr("sort")();
    } catch (const py::error_already_set& error) {
      if (error.trace()) throw;  // of the keys' own class
      fail(ErrorKind::kType, "function", "the keys of a dict must have an order: got ", shown(keys),
           "; use keys of one type.");
    }
  }

  void read_object(const py::handle& value) {
    mark('o');
    // 1, 1.0 and True are equal and are not the same argument.
    objects_.append(py::type::of(value));
    if (PyObject_Hash(value.ptr()) != -1) {
      objects_.append(value);
      return;
    }
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
    PyErr_Clear();
    objects_.append(py::cast(ByIdentity{py::reinterpret_borrow<py::object>(value)}));
  }

  static bool has_eager_trace() { return current_eager_trace() != nullptr; }

  const std::vector<std::uint32_t>& lengths_;
  const bool recorded_ = has_eager_trace();
  Arguments result_;
  std::vector<ExampleCounts> counts_;
  std::string key_;
  py::list objects_;
};

}  // namespace

Arguments read_arguments(const py::handle& args, const py::handle& kwargs,
                         const std::vector<std::uint32_t>& lengths) {
  try {
    Reader reader(lengths);
    reader.read(args);
    if (PyDict_Size(kwargs.ptr()) > 0) reader.read(kwargs);
    return reader.finish();
  } catch (const py::error_already_set& error) {
    if (error.matches(PyExc_MemoryError)) {
      fail(ErrorKind::kMemory, "function", "there is no memory for a copy of an argument: got ",
           shown(args), "; use smaller arrays.");
    }
    if (!error.matches(PyExc_RecursionError)) throw;
  }
  fail(ErrorKind::kValue, "function", "an argument is nested too deep, or contains itself: got ",
       shown(args), "; make it flat.");
}

void register_arguments(py::module_& m) {
  py::class_<ByIdentity>(m, "ByIdentity")
      .def("__hash__", [](const ByIdentity& self) { return std::hash<void*>()(self.object.ptr()); })
      .def("__eq__", [](const ByIdentity& self, const py::object& other) {
        return py::isinstance<ByIdentity>(other) &&
               self.object.is(py::cast<const ByIdentity&>(other).object);
      });
  py::class_<Arguments>(m, "Arguments")
      .def(py::init(&read_arguments), py::arg("args"), py::arg("kwargs"),
           py::arg("lengths") = std::vector<std::uint32_t>())
      // With those of `more` behind them.
      .def(
          "followed_by",
          [](const Arguments& a, const Arguments& more) {
            Arguments all = a;
            all.arrays.insert(all.arrays.end(), more.arrays.begin(), more.arrays.end());
            all.tensors.insert(all.tensors.end(), more.tensors.begin(), more.tensors.end());
            all.replicas = std::max(a.replicas, more.replicas);
            return all;
          },
          py::arg("more"))
      .def_readonly("key", &Arguments::key)
      .def_readonly("strings", &Arguments::strings)
      .def_readonly("replicas", &Arguments::replicas)
      .def_readonly("open", &Arguments::open)
      .def_property_readonly("sizes", [](const Arguments& a) { return py::bytes(a.sizes); })
      .def_property_readonly("lengths", [](const Arguments& a) { return py::bytes(a.lengths); });
}

}  // namespace samegrad
