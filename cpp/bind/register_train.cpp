#include <pybind11/stl.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "bind/arguments.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/python_host.h"
#include "bind/record.h"
#include "bind/state.h"
#include "bind/user_location.h"
#include "ops/print.h"
#include "train/compiled_function.h"
#include "train/eager_trace.h"
#include "train/graph_trace.h"
#include "train/random_state.h"
#include "train/tape.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// Writes the step's messages to Python's standard streams, which may be a notebook's cell.
void show(PrintBuffer& messages) {
  const std::vector<std::string> lines = messages.take();
  if (lines.empty()) return;
  const py::module_ sys = py::module_::import("sys");
  for (const std::string& line : lines) {
    const bool for_output = line.starts_with(kForStandardOutput);
    sys.attr(for_output ? "stdout" : "stderr").attr("write")(line.substr(for_output ? 1 : 0));
  }
}

CompiledFunction::RunResult run_unlocked(CompiledFunction& step, const Arguments& arguments) {
  CompiledFunction::RunResult result;
  PrintBuffer messages;
  try {
    if (is_recorded(step)) [[unlikely]] {
      result = run_observed(step, arguments.arrays, python_host.check_numerics, &messages);
      show(messages);
      return result;
    }
    const py::gil_scoped_release release;
    result = step.run_numbered(arguments.arrays, python_host.check_numerics, &messages);
  } catch (...) {
    show(messages);
    throw;
  }
  show(messages);
  return result;
}

// A tensor, or a list with one per replica.
py::object object_of(const PerReplica<Tensor>& output) {
  if (output.is_shared()) return py::cast(output[0]);
  py::list parts;
  for (const Tensor& tensor : output) parts.append(tensor);
  return parts;
}

// Under an eager tape.
py::list run_recorded(EagerTrace& trace, CompiledFunction& step, const Arguments& arguments,
                      const py::list& constants) {
  std::vector<Array> arrays;
  for (const py::handle tensor : constants) arrays.push_back(py::cast<const Tensor&>(tensor).array);
  const EagerTrace::RunOperands operands = with_state(
      StateLock::Use::kRead, [&] { return trace.hold(step, arguments.tensors, arrays); });
  const CompiledFunction::RunResult result = run_unlocked(step, arguments);
  py::list results;
  for (const auto& output : trace.record(step, operands, result.outputs, result.number)) {
    results.append(object_of(output));
  }
  return results;
}

py::list run_step(CompiledFunction& step, const Arguments& arguments, const py::list& constants) {
  if (const auto trace = current_eager_trace()) {
    return run_recorded(*trace, step, arguments, constants);
  }
  const std::vector<PerReplica<Array>> outputs = run_unlocked(step, arguments).outputs;
  py::list results;
  const Graph& program = step.program();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ExampleAxis batch = program.type(program.outputs[i]).batch;
    batch.symbol = 0;
    if (outputs[i].is_shared()) {
      results.append(make_tensor(outputs[i][0], batch));
      continue;
    }
    py::list parts;
    for (const Array& array : outputs[i]) parts.append(make_tensor(array, batch));
    results.append(parts);
  }
  return results;
}

// `with HeldState():` steps of other threads change no variables; this one may read them.
class HeldState {
 public:
  void enter() {
    SG_CHECK_VALUE(!lock_, "HeldState", "one can be entered once at a time: got a second time.");
    lock_.emplace(StateLock::Use::kRead, StateLock::Blocking::kTry);
    if (lock_->held()) return;
    const py::gil_scoped_release release;  // the step that holds it may need the GIL
    lock_->wait();
  }
  void exit() { lock_.reset(); }

 private:
  std::optional<StateLock> lock_;
};

void register_held_state(py::module_& m) {
  py::class_<HeldState>(m, "HeldState")
      .def(py::init<>())
      .def("__enter__", &HeldState::enter)
      .def("__exit__", [](HeldState& held, const py::object& /*kind*/, const py::object& /*error*/,
                          const py::object& /*traceback*/) { held.exit(); });
}

void register_variable(py::module_& m) {
  py::class_<Variable, std::shared_ptr<Variable>>(m, "StateVariable")
      .def(py::init([](std::string name, const std::vector<Tensor>& components,
                       std::vector<int> processes) {
             PerReplica<Array> arrays;
             for (const Tensor& t : components) arrays.push_back(concrete(t, "Variable").copy());
             return std::make_shared<Variable>(std::move(name), std::move(arrays),
                                               std::move(processes));
           }),
           py::arg("name"), py::arg("components"), py::arg("processes") = std::vector<int>())
      .def_property_readonly("processes", &Variable::processes)
      .def_property_readonly("name", &Variable::name)
      .def_property_readonly("_dtype", [](const Variable& v) { return name_of(v.dtype()); })
      .def_property_readonly("_shape", [](const Variable& v) { return shape_tuple(v.shape()); })
      .def_property_readonly("component_count", &Variable::component_count)
      .def("components",
           [](Variable& v) {
             // In a job of several processes, all processes must call it.
             const auto copy = [&] { return v.components_of_world(); };
             PerReplica<Array> arrays;
             if (v.processes().empty()) {
               arrays = with_state(StateLock::Use::kRead, copy);
             } else {
               const py::gil_scoped_release release;  // the other processes may take their time
               const StateLock lock(StateLock::Use::kRead);
               arrays = copy();
             }
             py::list parts;
             for (const Array& array : arrays) {
               parts.append(make_tensor(array));
             }
             return parts;
           })
      .def("set", [](Variable& v, const std::vector<Tensor>& components) {
        PerReplica<Array> arrays;
        for (const Tensor& t : components) arrays.push_back(concrete(t, "Variable").copy());
        with_state(StateLock::Use::kWrite, [&] { v.set(std::move(arrays)); });
      });
  m.def("read_variable", [](const std::shared_ptr<Variable>& v) {
    return with_state(StateLock::Use::kRead, [&] {
      if (const auto trace = current_trace()) return trace->tensor(trace->read(v));
      return make_tensor(v->components()[0]);
    });
  });
  m.def("write_variable", [](const std::shared_ptr<Variable>& v, const Tensor& value) {
    if (const auto trace = current_graph_trace()) return trace->write(v, trace->lift(value));
    Array array = concrete(value, "Variable.assign");
    // The caller may write into memory that is its own.
    if (!array.buffer()->owns_memory()) array = array.copy();
    with_state(StateLock::Use::kWrite, [&] { v->set({array}); });
  });
}

// The fields of samegrad/_function/explanation.py, by their names there.
py::dict fields_of(const ExplainedStep& step) {
  using py::literals::operator""_a;
  py::list operations;
  for (const ExplainedOperation& one : step.operations) {
    operations.append(py::dict("name"_a = one.name, "type"_a = one.type, "line"_a = one.line,
                               "fused"_a = one.fused ? one.names : "", "deferred"_a = one.deferred,
                               "parallel"_a = one.parallel));
  }
  py::object measured = py::none(), least = py::none(), loops = py::none(), pieces = py::none();
  if (step.measured) {
    measured = py::float_(step.measured->mean);
    least = py::float_(step.measured->least);
    loops = py::int_(step.measured->shared.loops);
    pieces = py::int_(step.measured->shared.pieces);
  }
  return py::dict("title"_a = step.title, "kind"_a = step.kind, "operations"_a = operations,
                  "notes"_a = step.notes, "tile_examples"_a = step.tile_examples,
                  "example_bytes"_a = step.example_bytes, "predicted"_a = step.predicted,
                  "measured"_a = measured, "least"_a = least, "parallel_loops"_a = loops,
                  "pieces"_a = pieces);
}

py::dict fields_of(const Explanation& explanation) {
  using py::literals::operator""_a;
  const RunStatistics& statistics = explanation.statistics;
  py::list reasons, steps;
  for (const BitsReason& reason : explanation.reasons) {
    reasons.append(py::make_tuple(reason.text, reason.line));
  }
  for (const ExplainedStep& step : explanation.steps) steps.append(fields_of(step));
  py::object measured = py::none(), least = py::none();
  if (statistics.runs > 0) measured = py::float_(explanation.measured().mean);
  if (statistics.runs > 0) least = py::float_(explanation.measured().least);
  return py::dict(
      "text"_a = to_string(explanation), "reasons"_a = reasons, "steps"_a = steps,
      "bytes"_a = statistics.arena_bytes, "bytes_without_reuse"_a = statistics.unshared_bytes,
      "predicted"_a = explanation.predicted(), "measured"_a = measured, "least"_a = least,
      "runs"_a = statistics.runs, "replicas"_a = explanation.replicas,
      "threads"_a = statistics.threads, "machine"_a = explanation.machine);
}

void register_step(py::module_& m) {
  py::class_<PlanOptions>(m, "PlanOptions")
      .def(py::init<>())
      .def_readwrite("inner_loops", &PlanOptions::inner_loops)
      .def_property(
          "defer_products",
          [](const PlanOptions& o) { return o.passes.leave_loops.large_reductions; },
          [](PlanOptions& o, bool wanted) { o.passes.leave_loops.large_reductions = wanted; })
      .def_property(
          "cut_products", [](const PlanOptions& o) { return o.passes.leave_loops.large_products; },
          [](PlanOptions& o, bool wanted) { o.passes.leave_loops.large_products = wanted; })
      .def_readwrite("join_small_nodes", &PlanOptions::join_small_nodes)
      .def_readwrite("fuse_updates", &PlanOptions::fuse_updates)
      .def_readwrite("sparse_rows", &PlanOptions::sparse_rows)
      .def_readwrite("write_in_place", &PlanOptions::write_in_place)
#define SAMEGRAD_PASS(name, doc)                                 \
  .def_property(                                                 \
      #name, [](const PlanOptions& o) { return o.passes.name; }, \
      [](PlanOptions& o, bool wanted) { o.passes.name = wanted; }, doc)
#include "passes/passes.def"
#undef SAMEGRAD_PASS
      ;
  py::class_<CompiledFunction, std::shared_ptr<CompiledFunction>>(m, "Step")
      .def_property_readonly("fixed", &CompiledFunction::fixed)
      .def("run", &run_step, py::arg("arguments"), py::arg("constants"))
      .def("program", &CompiledFunction::program_text)
      .def(
          "explain",
          [](CompiledFunction& step, const py::object& given, int measure) {
            const auto* arguments = given.is_none() ? nullptr : given.cast<const Arguments*>();
            return fields_of([&] {
              const py::gil_scoped_release release;
              return step.explanation(arguments ? &arguments->arrays : nullptr, measure);
            }());
          },
          py::arg("arguments") = py::none(), py::arg("measure") = 0)
      // Equal for steps that share what is compiled.
      .def_property_readonly("compiled", [](const CompiledFunction& s) {
        return reinterpret_cast<std::uintptr_t>(&s.compiled());
      });
}

void register_tape(py::module_& m) {
  py::class_<Tape>(m, "Tape")
      .def(
          py::init([](bool persistent) { return std::make_unique<Tape>(python_host, persistent); }),
          py::arg("persistent"))
      // Both methods are native code, so that an interrupt cannot arrive between a call and its
      // effect.
      .def("__enter__",
           [](const py::object& self) {
             py::cast<Tape&>(self).start();
             return self;
           })
      .def("__exit__", [](Tape& tape, const py::args& /*error*/) { tape.stop(); })
      .def("_reset", &Tape::reset)
      .def("_watch", &Tape::watch)
      .def("_reads_since", &Tape::reads_since, py::arg("count"))
      .def("_value_of",
           [](Tape& tape, const std::shared_ptr<Variable>& variable) {
             return with_state(StateLock::Use::kRead, [&] { return tape.target(variable); });
           })
      .def(
          "_gradient",
          [](Tape& tape, const std::vector<const Tensor*>& targets, const py::sequence& seeds,
             const py::sequence& sources, bool again) {
            std::vector<const Tensor*> weights;
            for (const py::handle seed : seeds) weights.push_back(py::cast<const Tensor*>(seed));
            std::vector<Tape::Origin> origins;
            for (const py::handle source : sources) {
              if (py::isinstance<Tensor>(source)) {
                origins.push_back({py::cast<const Tensor*>(source)});
              } else {
                origins.push_back({nullptr, py::cast<std::shared_ptr<Variable>>(source)});
              }
            }
            return tape.gradient(targets, weights, origins, again);
          },
          py::arg("targets"), py::arg("seeds"), py::arg("sources"), py::arg("again") = false);
}

void register_random_state(py::module_& m) {
  using Field = std::atomic<std::uint64_t> RandomState::*;
  py::class_<RandomState> state(m, "RandomState");
  const std::pair<const char*, Field> fields[] = {{"seed", &RandomState::seed},
                                                  {"step", &RandomState::step},
                                                  {"ordinal", &RandomState::ordinal},
                                                  {"created", &RandomState::created}};
  for (const auto& [name, field] : fields) {
    state.def_property(
        name, [field](const RandomState& s) { return (s.*field).load(); },
        [field](RandomState& s, std::uint64_t value) { s.*field = value; });
  }
  state.def("take_ordinal", [](RandomState& s) { return s.ordinal++; });
}

}  // namespace

void register_train(py::module_& m) {
  register_held_state(m);
  register_variable(m);
  register_step(m);
  register_tape(m);
  m.def("user_line", &user_location,
        "The innermost line outside this package and NumPy, e.g. 'train.py:31'.");
  m.def("in_user_code", &in_user_code, py::arg("line"),
        "Return what an error says about such a line, behind its message.");
  register_random_state(m);
  m.def("checks_numerics", [] { return python_host.check_numerics.load(); });
  m.def(
      "set_check_numerics", [](bool wanted) { python_host.check_numerics = wanted; },
      py::arg("wanted"));
  m.def("random_state", &random_state, py::return_value_policy::reference);
}

}  // namespace samegrad
