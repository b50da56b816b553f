// Bindings of traces, and of the programs that they become.
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>

#include "analysis/loss_normalization.h"
#include "analysis/whole_batch.h"
#include "base/error.h"
#include "bind/arguments.h"
#include "bind/bind.h"
#include "bind/convert.h"
#include "bind/python_host.h"
#include "ops/random_attributes.h"
#include "train/compiled_function.h"
#include "train/graph_trace.h"
#include "train/random_state.h"
#include "train/traced_programs.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// Python has one class for all traces.
FunctionTrace& function_trace(Trace& trace) {
  auto* const function = dynamic_cast<FunctionTrace*>(&trace);
  SG_CHECK_TYPE(function != nullptr, "Trace",
                "the trace of a function is needed: got another one.");
  return *function;
}

// By their keys in samegrad/_autodiff/loss_normalization_check.py.
const char* name_of(NormalizationMistake::Kind kind) {
  constexpr const char* kNames[] = {"mean_then_sum",  "share_then_mean", "times_replicas",
                                    "regularization", "penalty",         "nonlinear_share"};
  return kNames[int(kind)];
}

py::tuple checked_normalization(Trace& given, const std::vector<Tensor>& outputs) {
  FunctionTrace& trace = function_trace(given);
  Values values;
  for (const Tensor& output : outputs) values.push_back(trace.lift(output));
  const NormalizationReport report = trace.check_loss_normalization(values);
  py::list mistakes;
  for (const NormalizationMistake& mistake : report.mistakes) {
    mistakes.append(py::make_tuple(name_of(mistake.kind), mistake.location));
  }
  return py::make_tuple(mistakes, report.shares);
}

// By their keys in samegrad/_autodiff/replica_dependence_check.py.
py::list dependences_of(Trace& trace) {
  py::list found;
  for (const ReplicaDependence& one : function_trace(trace).replica_dependences()) {
    constexpr const char* kNames[] = {"count", "mean", "other"};
    found.append(py::make_tuple(kNames[int(one.statistic)], one.op, one.location, one.averaged));
  }
  return found;
}

std::string normalization_name(Trace& trace, const Tensor& tensor) {
  static constexpr const char* kNames[] = {"unknown", "common", "share", "times_replicas", "mean"};
  return kNames[int(samegrad::loss_normalization(trace.program(), trace.lift(tensor)))];
}

py::object batch_value(Trace& trace, const Tensor& tensor) {
  const Value whole = samegrad::over_all_replicas(trace, trace.lift(tensor));
  return whole.exists() ? py::cast(trace.tensor(whole)) : py::none();
}

// The name of the operation that made the value of `old` and another one, and that one.
py::object made_of(Trace& trace, const Tensor& value, const Tensor& old) {
  const Value made = trace.lift(value), from = trace.lift(old);
  const Node* node = trace.program().producer(made);
  if (!node || node->inputs.size() != 2 || node->inputs[0] == node->inputs[1]) return py::none();
  for (const std::size_t k : {0u, 1u}) {
    if (node->inputs[k] != from) continue;
    return py::make_tuple(std::string(node->op->name), trace.tensor(node->inputs[1 - k]));
  }
  return py::none();
}

ValueUse::Kind use_of(const std::string& name) {
  if (name == "gradient") return ValueUse::Kind::kGradient;
  SG_CHECK_VALUE(name == "assignment", "note_use", "unknown use '", name, "'.");
  return ValueUse::Kind::kAssignment;
}

// Ends traces of one function with their results. Several are those for replicas with different
// counts of examples.
TracedPrograms finish_traces(const std::vector<std::shared_ptr<Trace>>& traces,
                             const std::vector<std::vector<Tensor>>& outputs) {
  std::vector<Program> programs;
  std::vector<std::string> split_at;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    FunctionTrace& trace = function_trace(*traces[i]);
    Values values;
    for (const Tensor& output : outputs.at(i)) values.push_back(trace.lift(output));
    programs.push_back(trace.finish(std::move(values)));
    split_at.push_back(trace.function().split_at);
  }
  return {std::move(programs), std::move(split_at)};
}

// The step of the arguments, and the arrays that the program found outside; None where the traces
// took other lengths for granted.
py::object compile_programs(TracedPrograms& traced, const Arguments* arguments,
                            const PlanOptions& given, bool numbers_change) {
  SG_CHECK_VALUE(arguments || !traced.has_lengths(), "TracedPrograms",
                 "a trace with lengths needs arguments that have them: got none.");
  std::optional<Program> made =
      traced.has_lengths() ? traced.program_of(arguments->arrays) : traced.take();
  if (!made) return py::none();
  Program program = *std::move(made);
  py::list constants;
  for (const Array& array : program.graph.constants) constants.append(make_tensor(array));
  const Sharing sharing = numbers_change ? Sharing::kNumbers : Sharing::kEqual;
  auto step = std::make_shared<CompiledFunction>(std::move(program), given, sharing);
  return py::make_tuple(std::move(step), constants);
}

std::shared_ptr<Trace> make_trace(int replicas, std::vector<int> members) {
  SG_CHECK_VALUE(replicas >= 1, "Trace", "at least one replica is needed: got ", replicas, ".");
  return std::make_shared<FunctionTrace>(python_host, replicas, std::move(members));
}

Tensor add_argument(Trace& trace, const std::vector<Tensor>& parts, std::uint32_t lengths,
                    bool own_symbol) {
  PerReplica<Array> arrays;
  for (const Tensor& part : parts) arrays.push_back(wherever(part, "argument"));
  const ExampleAxis batch = parts.at(0).type.batch;
  return trace.tensor(function_trace(trace).argument(arrays, batch, lengths, own_symbol));
}

}  // namespace

void register_trace(py::module_& m) {
  py::class_<Trace, std::shared_ptr<Trace>>(m, "Trace")
      .def(py::init(&make_trace), py::arg("replicas") = 1, py::arg("members") = std::vector<int>())
      // True if replicas have different numbers of examples.
      .def_property_readonly("uneven",
                             [](const Trace& t) {
                               return std::ranges::any_of(t.program().symbols, [](const Symbol& s) {
                                 return !s.traced_counts.empty();
                               });
                             })
      // The replicas whose counts of examples decide alike in this program; empty: all replicas.
      .def_property_readonly("members", [](const Trace& t) { return t.program().symbols.replicas; })
      .def_property("replicas", &Trace::replicas, &Trace::set_replicas)
      .def("keep_collectives", [](Trace& t) { t.function().keeps_collectives = true; })
      // The first replica of each process, and the number of all; empty: there is one process.
      .def_property(
          "processes", [](const Trace& t) { return t.function().processes; },
          [](Trace& t, std::vector<int> processes) {
            t.function().processes = std::move(processes);
          })
      .def("argument", &add_argument, py::arg("parts"), py::arg("lengths") = 0,
           py::arg("own_symbol") = false)
      .def(
          "initial_value",
          [](Trace& t, const Tensor& value, const Arguments& arguments, bool given) {
            return make_tensor(function_trace(t).initial_value(value, arguments.arrays, given));
          },
          py::arg("value"), py::arg("arguments"), py::arg("given"))
      .def(
          "let_evaluate",
          [](Trace& t, const Arguments& arguments) {
            function_trace(t).let_evaluate(arguments.arrays);
          },
          py::arg("arguments"))
      // From now on it draws as outside of steps: the numbers of a function that prepares data.
      .def("draw_as_data", [](Trace& t) { t.draws().ordinal = kOfDataFunction; })
      .def_property_readonly("data_draws",
                             [](const Trace& t) { return t.draws().ordinal - kOfDataFunction; })
      .def("__str__", [](const Trace& t) { return to_string(t.program()); })
      .def("check_loss_normalization", &checked_normalization, py::arg("outputs"))
      .def("loss_normalization", &normalization_name, py::arg("scalar"))
      .def("replica_dependences", &dependences_of)
      .def("over_all_replicas", &batch_value, py::arg("scalar"))
      .def("made_of", &made_of, py::arg("value"), py::arg("old"));
  py::class_<TracedPrograms>(m, "TracedPrograms")
      .def(py::init(&finish_traces), py::arg("traces"), py::arg("outputs"))
      .def_property_readonly("has_lengths", &TracedPrograms::has_lengths)
      .def_property_readonly("granted", &TracedPrograms::granted)
      .def("compile", &compile_programs, py::arg("arguments"), py::arg("options"),
           py::arg("numbers_change") = false);
  m.def("note_use", [](const std::string& use, const Tensor& tensor) {
    // A body's values belong to another graph, which the check does not follow.
    const auto trace = std::dynamic_pointer_cast<FunctionTrace>(current_trace());
    if (trace) trace->use(use_of(use), tensor);
  });
  m.def("take_messages", [] { return eager_messages().take(); });
  m.def("tracing", [] { return current_graph_trace() != nullptr; });
  m.def("current_trace", [] { return current_trace(); });
  m.def("next_ordinal", [] {
    const auto trace = current_trace();
    // Draws outside any step have ordinals of their own.
    if (!trace) return kOutsideSteps + std::int64_t(random_state().ordinal++);
    const auto graph = std::dynamic_pointer_cast<GraphTrace>(trace);
    std::int64_t& next = trace->draws().ordinal;
    SG_CHECK_VALUE(!graph || !graph->outer() || next < kOfDataFunction, "map",
                   "a branch or loop of a traced data function cannot draw random values.");
    return next++;
  });
}

}  // namespace samegrad
