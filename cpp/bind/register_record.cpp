#include <pybind11/stl.h>

#include <mutex>

#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/record.h"
#include "ir/op_def.h"
#include "kernels/table.h"
#include "tensor/non_addressable.h"
#include "train/collective_fingerprint.h"

namespace py = pybind11;

namespace samegrad {
namespace {

struct StepRecording {
  StepRecording(py::object observer_, std::int64_t detail)
      : observer(std::move(observer_)), recorder(detail) {}

  py::object observer;
  StepRecorder recorder;
  std::mutex one_step;  // steps of several threads are recorded one after the other
};

// Changed and read under Python's lock.
std::shared_ptr<StepRecording>& recording() {
  static auto* kept = new std::shared_ptr<StepRecording>;  // outlives the interpreter
  return *kept;
}

thread_local bool in_recorded_step = false;

class Inside {
 public:
  Inside() { in_recorded_step = true; }
  ~Inside() { in_recorded_step = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

const char* name_of(Placement placement) {
  constexpr const char* kNames[] = {"replicated", "rows", "partial", "own"};
  return kNames[int(placement)];
}

py::list fields_of(const std::vector<OperationHash>& operations) {
  py::list list;
  for (const OperationHash& one : operations) {
    list.append(
        py::make_tuple(one.op, one.type, one.line, name_of(one.placement), one.inputs, one.hashes));
  }
  return list;
}

py::list fields_of(const std::vector<StoredHash>& stored) {
  py::list list;
  for (const StoredHash& one : stored) {
    list.append(py::make_tuple(one.title, one.op, one.type, one.line, one.hash));
  }
  return list;
}

// Parts that this process has.
py::list arrays_of(const std::vector<PerReplica<Array>>& values) {
  py::list list;
  for (const PerReplica<Array>& parts : values) {
    py::list of_parts;
    for (const Array& part : parts) {
      if (!is_non_addressable(part)) of_parts.append(make_tensor(part));
    }
    list.append(of_parts);
  }
  return list;
}

py::list entries_for_python(CompiledFunction& step) {
  constexpr const char* kKinds[] = {"argument", "output", "gradient", "variable"};
  py::list list;
  for (const StepEntry& entry : entries_of(step)) {
    list.append(py::make_tuple(kKinds[int(entry.kind)], entry.name, entry.index,
                               samegrad::name_of(entry.type.dtype), to_string(entry.type),
                               name_of(entry.placement)));
  }
  return list;
}

void add_operations(const Graph& graph, const Locations& locations, py::list& list) {
  for (const Node& node : graph.nodes) {
    for (const GraphPtr& region : node.regions) add_operations(*region, locations, list);
    const bool known = node.location >= 0 && std::size_t(node.location) < locations.size();
    list.append(py::make_tuple(node.op->name,
                               node.outputs.empty() ? "" : to_string(graph.type(node.outputs[0])),
                               known ? locations[std::size_t(node.location)] : ""));
  }
}

py::list reasons_of(const CompiledFunction& step) {
  py::list list;
  for (const BitsReason& reason : step.bits_reasons()) {
    list.append(py::make_tuple(reason.text, reason.line));
  }
  return list;
}

}  // namespace

bool is_recorded(const CompiledFunction& step) {
  return recording() && !in_recorded_step && !step.program().variables.empty();
}

CompiledFunction::RunResult run_observed(CompiledFunction& step,
                                         const std::vector<PerReplica<Array>>& arguments,
                                         bool check_finite, PrintBuffer* messages) {
  const std::shared_ptr<StepRecording> own = recording();  // until the step is over
  StepHashes hashes(own->recorder);
  CompiledFunction::RunResult result;
  {
    const py::gil_scoped_release release;
    const std::scoped_lock lock(own->one_step);
    const Inside inside;
    result = step.run_numbered(arguments, check_finite, messages, &hashes);
    const py::gil_scoped_acquire acquire;
    const bool detailed = !hashes.record().operations.empty();
    own->observer(py::cast(&step, py::return_value_policy::reference),
                  py::cast(std::move(hashes.record())),
                  detailed ? py::object(arrays_of(arguments)) : py::none());
  }
  return result;
}

void register_record(py::module_& m) {
  py::class_<StepRecord>(m, "StepRecord")
      .def_readonly("index", &StepRecord::index)
      .def_readonly("seed", &StepRecord::seed)
      .def_readonly("draw", &StepRecord::draw)
      .def_readonly("examples", &StepRecord::examples)
      .def_readonly("hashes", &StepRecord::hashes)
      .def_readonly("before", &StepRecord::before)
      .def_readonly("example_hashes", &StepRecord::example_hashes)
      .def_property_readonly("operations",
                             [](const StepRecord& r) { return fields_of(r.operations); })
      .def_property_readonly("stored", [](const StepRecord& r) { return fields_of(r.stored); })
      .def_property_readonly("variables",
                             [](const StepRecord& r) { return arrays_of(r.variables); });
  m.def(
      "record_steps",
      [](const py::object& observer, std::int64_t detail) {
        recording() =
            observer.is_none() ? nullptr : std::make_shared<StepRecording>(observer, detail);
      },
      py::arg("observer"), py::arg("detail") = -1);
  m.def("step_hash", [](const CompiledFunction& step) { return fingerprint_of(step.program()); });
  m.def("step_replicas", [](const CompiledFunction& step) { return step.program().replicas; });
  m.def("step_entries", &entries_for_python);
  m.def("step_operations", [](const CompiledFunction& step) {
    py::list list;
    add_operations(step.program(), step.binding().locations, list);
    return list;
  });
  m.def("step_variables", [](const CompiledFunction& step) { return step.binding().names; });
  m.def("step_reasons", &reasons_of);
  // The hash that records of steps have of such an array.
  m.def("hash_of", [](const Tensor& tensor) {
    const Array& array = concrete(tensor, "hash_of");
    return hash_of({array.dtype(), array.raw(), array.shape()});
  });
}

}  // namespace samegrad
