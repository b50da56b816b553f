#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/per_replica_batch.h"
#include "data/feed.h"
#include "train/random_state.h"
#include "train/trace.h"

namespace py = pybind11;

namespace samegrad {
namespace {

constexpr ExampleAxis kRowsAreExamples{0, 1, 0};

struct PlanHandle {
  IndexPlanPtr plan;
};

py::object to_python(const Array& array, const ExampleAxis& batch) {
  return py::cast(make_tensor(array, batch));
}

py::object part_of(const PerReplicaBatch& parts, std::size_t replica) {
  return to_python(parts.part(replica), kRowsAreExamples);
}

py::tuple tuple_of(const PerReplicaBatch& parts) {
  py::tuple result(parts.size());
  for (std::size_t r = 0; r < parts.size(); ++r) result[r] = part_of(parts, r);
  return result;
}

// A feed that gives Python's nested structures.
class FeedIterator {
 public:
  FeedIterator(const PlanHandle& plan, const py::sequence& sources, FeedOptions options,
               std::int64_t epoch, std::int64_t position, py::object pack, py::object per_replica,
               bool lazy)
      : first_(std::size_t(options.first)),
        last_(options.last > 0 ? std::size_t(options.last) : std::size_t(options.replicas)),
        feed_(plan.plan, sources_of(sources), options, epoch, position),
        batch_(plan.plan->batched() ? kRowsAreExamples : ExampleAxis{}),
        pack_(std::move(pack)),
        per_replica_(std::move(per_replica)),
        lazy_(lazy) {}

  std::int64_t position() const { return feed_.position() - (kept_ ? kept_->consumed : 0); }

  py::object next() {
    FeedElement element;
    Feed::Status status = Feed::Status::kReady;
    if (kept_) {
      element = *std::exchange(kept_, std::nullopt);
    } else {
      status = feed_.next(element, std::chrono::milliseconds(0));
    }
    while (status == Feed::Status::kPending) {
      {
        const py::gil_scoped_release release;
        status = feed_.next(element, std::chrono::milliseconds(100));
      }
      const bool interrupted = status == Feed::Status::kPending && PyErr_CheckSignals() != 0;
      if (interrupted) throw py::error_already_set();
    }
    if (status == Feed::Status::kEnd) throw py::stop_iteration();
    try {
      return packed(element);
    } catch (...) {  // the next call gives what this one could not
      kept_ = std::move(element);
      throw;
    }
  }

 private:
  py::object packed(const FeedElement& element) const {
    if (pack_.is_none()) return leaf(element, 0);
    py::tuple leaves(element.arrays.size());
    for (std::size_t i = 0; i < element.arrays.size(); ++i) leaves[i] = leaf(element, i);
    if (pack_.ptr() == reinterpret_cast<PyObject*>(&PyTuple_Type)) return leaves;
    return pack_(leaves);
  }

  // (tensor or None, column, first, step) each
  static std::vector<FeedSource> sources_of(const py::sequence& given) {
    std::vector<FeedSource> sources;
    for (const py::handle item : given) {
      const auto [tensor, column, first, step] =
          py::cast<std::tuple<std::optional<Tensor>, int, std::int64_t, std::int64_t>>(item);
      FeedSource source{{}, column, first, step};
      if (tensor) source.array = concrete(*tensor, "Dataset");
      sources.push_back(std::move(source));
    }
    return sources;
  }

  py::object leaf(const FeedElement& element, std::size_t index) const {
    const Array& array = element.arrays[index];
    if (element.bounds.empty()) return to_python(array, batch_);
    PerReplicaBatch parts{array, element.bounds, first_, last_};
    return lazy_ ? per_replica_(std::move(parts)) : per_replica_(tuple_of(parts));
  }

  std::size_t first_, last_;  // this process's replicas
  Feed feed_;
  std::optional<FeedElement> kept_;
  ExampleAxis batch_;
  py::object pack_, per_replica_;
  bool lazy_;
};

FeedSplit split_from_name(const std::string& name) {
  if (name == "none") return FeedSplit::kNone;
  if (name == "chunks") return FeedSplit::kChunks;
  if (name == "own") return FeedSplit::kOwnElements;
  fail(ErrorKind::kValue, "Feed", "split must be none, chunks or own: got '", name, "'.");
}

// Tensors of one shape as the rows of a new one.
py::object stack_rows(const py::sequence& tensors) {
  const auto rows = std::int64_t(tensors.size());
  SG_CHECK_VALUE(rows > 0, "Dataset.batch", "a batch has at least one element: got none.");
  const Array first = concrete(py::cast<const Tensor&>(py::object(tensors[0])), "Dataset.batch");
  Shape shape{rows};
  for (const std::int64_t size : first.shape()) shape.push_back(size);
  Array result(first.dtype(), shape);
  std::byte* to = result.raw();
  for (const py::handle tensor : tensors) {
    const Array& array = concrete(py::cast<const Tensor&>(tensor), "Dataset.batch");
    if (array.shape() != first.shape() || array.dtype() != first.dtype()) {
      fail(ErrorKind::kInvalidArgument, "Dataset.batch",
           "elements of one batch must have one shape and dtype: got ", name_of(first.dtype()), " ",
           to_string(first.shape()), " and ", name_of(array.dtype()), " ", to_string(array.shape()),
           "; make them equal with map(), or use padded_batch().");
    }
    if (array.bytes() > 0) std::memcpy(to, array.raw(), array.bytes());
    to += array.bytes();
  }
  return to_python(result, kRowsAreExamples);
}

void register_per_replica_batch(py::module_& m) {
  py::class_<PerReplicaBatch>(m, "RowParts")
      .def("__len__", &PerReplicaBatch::size)
      .def("__getitem__",
           [](const PerReplicaBatch& parts, std::int64_t replica) {
             const auto size = std::int64_t(parts.size());
             if (replica < 0) replica += size;
             if (replica < 0 || replica >= size) throw py::index_error();
             return part_of(parts, std::size_t(replica));
           })
      .def_property_readonly("_shape",  // of all parts together
                             [](const PerReplicaBatch& p) { return shape_tuple(p.shape()); })
      .def_property_readonly("_dtype",
                             [](const PerReplicaBatch& p) { return name_of(p.array.dtype()); })
      .def("tensors", &tuple_of);
}

void register_plan(py::module_& m) {
  py::class_<PlanHandle>(m, "IndexPlan")
      .def_static("rows", [](std::int64_t n) { return PlanHandle{rows_in_order(n)}; })
      .def_static("zip",
                  [](const std::vector<PlanHandle>& inputs) {
                    std::vector<IndexPlanPtr> plans;
                    for (const PlanHandle& input : inputs) plans.push_back(input.plan);
                    return PlanHandle{zipped(std::move(plans))};
                  })
      .def("shuffle",
           [](const PlanHandle& p, std::int64_t buffer, std::uint64_t seed, bool reshuffle) {
             return PlanHandle{shuffled(p.plan, buffer, seed, reshuffle)};
           })
      .def("repeat",
           [](const PlanHandle& p, std::int64_t n) { return PlanHandle{repeated(p.plan, n)}; })
      .def("take", [](const PlanHandle& p, std::int64_t n) { return PlanHandle{taken(p.plan, n)}; })
      .def("skip",
           [](const PlanHandle& p, std::int64_t n) { return PlanHandle{skipped(p.plan, n)}; })
      .def("shard", [](const PlanHandle& p, std::int64_t n,
                       std::int64_t index) { return PlanHandle{sharded(p.plan, n, index)}; })
      .def("batch", [](const PlanHandle& p, std::int64_t size,
                       bool drop) { return PlanHandle{batched(p.plan, size, drop)}; })
      .def("order",
           [](const PlanHandle& p, std::int64_t epoch, std::int64_t count) {
             RowIndices indices;
             p.plan->open(epoch)->read(count, indices);
             return indices.numbers;
           })
      .def_property_readonly("columns", [](const PlanHandle& p) { return p.plan->columns(); })
      .def_property_readonly("size", [](const PlanHandle& p) { return p.plan->size(); });
}

}  // namespace

void register_feed(py::module_& m) {
  register_plan(m);
  register_per_replica_batch(m);
  py::class_<FeedIterator>(m, "Feed")
      .def(py::init([](const PlanHandle& plan, const py::sequence& sources, py::object pack,
                       const std::string& split, int replicas, py::object per_replica, bool lazy,
                       int depth, std::int64_t epoch, std::int64_t position,
                       std::pair<int, int> own) {
             const FeedOptions options{split_from_name(split), replicas, own.first, own.second,
                                       depth};
             return std::make_unique<FeedIterator>(plan, sources, options, epoch, position,
                                                   std::move(pack), std::move(per_replica), lazy);
           }),
           py::arg("plan"), py::arg("sources"), py::arg("pack"), py::arg("split") = "none",
           py::arg("replicas") = 1, py::arg("per_replica") = py::none(), py::arg("lazy") = false,
           py::arg("depth") = 0, py::arg("epoch") = 0, py::arg("position") = 0,
           py::arg("own") = std::pair(0, 0))
      .def("next", &FeedIterator::next)
      .def_property_readonly("position", &FeedIterator::position);
  m.def("shuffle_draws", &shuffle_draws, py::arg("seed"), py::arg("epoch"), py::arg("first"),
        py::arg("count"));
  m.def("share_bounds", &share_bounds, py::arg("rows"), py::arg("replicas"));
  m.def(
      "split_rows",
      [](const Tensor& tensor, const std::vector<std::int64_t>& bounds, std::pair<int, int> own) {
        const Array& all = concrete(tensor, "split_rows");
        if (own.second == 0) return tuple_of({all, bounds});
        const auto first = std::size_t(own.first), last = std::size_t(own.second);
        return tuple_of({all.rows(bounds.at(first), bounds.at(last)), bounds, first, last});
      },
      py::arg("tensor"), py::arg("bounds"), py::arg("own") = std::pair(0, 0));
  // The parts that this process has.
  m.def("own_parts", [](const py::tuple& parts) {
    py::list own;
    for (const py::handle part : parts) {
      if (!py::isinstance<Tensor>(part) ||
          !is_non_addressable(py::cast<const Tensor&>(part).array)) {
        own.append(part);
      }
    }
    return py::tuple(own);
  });
  // Parts of replicas [first, …) among those of all: the others have the shapes given.
  m.def(
      "spread_parts",
      [](const std::vector<Tensor>& own, int first,
         const std::vector<std::vector<std::int64_t>>& shapes) {
        py::tuple parts(shapes.size());
        for (std::size_t r = 0; r < shapes.size(); ++r) {
          const auto at = std::int64_t(r) - first;
          const bool here = at >= 0 && at < std::ssize(own);
          const Tensor& like = own.at(0);
          parts[r] = here ? py::cast(own[std::size_t(at)])
                          : to_python(non_addressable_array(like.array.dtype(), Shape(shapes[r])),
                                      like.type.batch);
        }
        return parts;
      },
      py::arg("own"), py::arg("first"), py::arg("shapes"));
  m.def("stack_rows", &stack_rows, py::arg("tensors"));
  // Threads must not work on while the process takes itself apart.
  py::module_::import("atexit").attr("register")(py::cpp_function(&Feed::stop_all));
}

}  // namespace samegrad
