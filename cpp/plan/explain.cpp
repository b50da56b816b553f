#include "plan/explain.h"

#include <cstdio>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/machine.h"
#include "base/thresholds.h"
#include "ops/attributes.h"
#include "ops/fused.h"
#include "plan/cost.h"

namespace samegrad {
namespace {

std::string reason_of_tile(const LoopStep& loop) {
  if (streams_weights(loop)) {
    return "each passes through " + text_of_bytes(loop.weight_bytes) + " of weights beyond L2";
  }
  if (!loop.inner.empty()) return "the least, as an example fills L1";
  return "they have " + text_of_bytes(thresholds().tile_bytes) + " of L2";
}

std::string note_of_loop(const LoopStep& loop) {
  return text("tiles of ", loop.tile_examples, " examples, each with ",
              text_of_bytes(loop.example_bytes), " between the nodes: ", reason_of_tile(loop));
}

std::string note_of_product(const Plan& plan, const GroupedGemmStep& step) {
  const Node& node = plan.graph.nodes[step.nodes[0]];
  const Value weights = node.inputs[std::size_t(node.op->prepacking.operand)];
  return text("out of its loop: ", text_of_bytes(example_bytes(plan.graph.type(weights))), " of ",
              text_of_bytes(plan.loop_weights), " of weights, where L2 keeps ",
              text_of_bytes(thresholds().loop_weight_bytes));
}

ExplainedOperation explained(const Plan& plan, NodeId n, const PlanStep& step, int threads) {
  const Graph& graph = plan.graph;
  const Node& node = graph.nodes[n];
  const Value result = node.outputs[0];
  ExplainedOperation operation{.result = result, .name = node.op->name};
  operation.type = text(to_string(graph.type(result)), suffix_of(graph.placement(result)));
  if (node.location >= 0 && std::size_t(node.location) < graph.locations.size()) {
    operation.line = graph.locations[std::size_t(node.location)];
  }
  operation.deferred = !step.is<LoopStep>() && node.locality == Locality::kBatchReduction;
  operation.parallel = step.is<NodeStep>() && threads > 1 && is_shared(plan.graph, node);
  if (const auto* named = node.attrs.get_if<NamedAttrs>()) operation.names = named->names;
  operation.fused = node.attrs.get_if<FusedAttrs>() != nullptr;
  return operation;
}

ExplainedStep explained(const Plan& plan, const PlanStep& step, int threads) {
  ExplainedStep result{.kind = step.name(), .title = step.title(plan)};
  result.only_names_rows = step.is<SparseRowsStep>();
  if (const auto* loop = step.get_if<LoopStep>()) {
    result.notes = {note_of_loop(*loop)};
    result.tile_examples = loop->tile_examples;
    result.example_bytes = loop->example_bytes;
  }
  if (const auto* product = step.get_if<GroupedGemmStep>()) {
    result.notes = {note_of_product(plan, *product)};
  }
  for (NodeId n : step.nodes()) result.operations.push_back(explained(plan, n, step, threads));
  return result;
}

std::string text_of_time(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1e-3 ? "%.1f us" : "%.2f ms",
                seconds * (seconds < 1e-3 ? 1e6 : 1e3));
  return text;
}

void print_operations(std::ostringstream& out, const ExplainedStep& step) {
  if (step.only_names_rows) {
    out << ": of";
    for (const ExplainedOperation& operation : step.operations) out << " %" << operation.result;
    out << "\n";
    return;
  }
  out << ":\n";
  for (const ExplainedOperation& operation : step.operations) {
    out << "    %" << operation.result << " " << operation.name << " " << operation.type;
    if (operation.deferred) out << " deferred from the loop";
    if (operation.parallel) out << " by all threads";
    if (!operation.names.empty()) out << ": '" << operation.names << "'";
    out << "\n";
  }
}

void print_step(std::ostringstream& out, const ExplainedStep& step, bool has_times) {
  out << "  " << step.title;
  print_operations(out, step);
  for (const std::string& note : step.notes) out << "    " << note << "\n";
  if (!has_times) return;
  out << "    predicted " << text_of_time(step.predicted);
  if (step.measured) {
    out << ", measured " << text_of_time(step.measured->mean) << " (least "
        << text_of_time(step.measured->least) << ")";
    const SharedWork& shared = step.measured->shared;
    if (shared.loops > 0) {
      out << ", " << shared.pieces << " pieces in " << shared.loops << " parallel loop(s)";
    }
  }
  out << "\n";
}

void print_machine(std::ostringstream& out, const Explanation& explanation) {
  const RunStatistics& statistics = explanation.statistics;
  out << "machine: " << explanation.machine << ", " << statistics.threads << " thread(s)\n";
  out << "memory between steps: " << text_of_bytes(statistics.arena_bytes) << " (of "
      << text_of_bytes(statistics.unshared_bytes) << " without reuse)\n";
  out << "time: predicted " << text_of_time(explanation.predicted());
  if (statistics.runs > 0) {
    const StepTime measured = explanation.measured();
    out << ", measured " << text_of_time(measured.mean) << " (mean of " << statistics.runs
        << " runs that changed nothing; least " << text_of_time(measured.least) << ")";
  }
  out << "\n";
}

void print_bits(std::ostringstream& out, const Explanation& explanation) {
  out << "bitwise identical to one replica: ";
  if (explanation.replicas == 1) {
    out << "yes, this is one replica\n";
    return;
  }
  out << (explanation.reasons.empty() ? "yes\n" : "no:\n");
  for (const BitsReason& reason : explanation.reasons) {
    out << "  - " << reason.line << (reason.line.empty() ? "" : ": ") << reason.text << "\n";
  }
}

}  // namespace

double Explanation::predicted() const {
  double seconds = 0;
  for (const ExplainedStep& step : steps) seconds += step.predicted;
  return seconds;
}

StepTime Explanation::measured() const {
  StepTime all;
  for (const ExplainedStep& step : steps) {
    if (!step.measured) continue;
    all.mean += step.measured->mean;
    all.least += step.measured->least;
  }
  return all;
}

Explanation explain(const Graph& program, const Plan& plan, RunStatistics statistics) {
  Explanation explanation{.replicas = plan.graph.replicas, .operations = plan.graph.nodes.size()};
  explanation.reasons = replica_dependences(program, plan.graph);
  explanation.machine = to_string(machine());
  for (StepId s : plan.steps.ids()) {
    ExplainedStep step = explained(plan, plan.steps[s], statistics.threads);
    if (s.index() < statistics.predicted.size()) step.predicted = statistics.predicted[s.index()];
    if (s.index() < statistics.measured.size()) step.measured = statistics.measured[s.index()];
    explanation.steps.push_back(std::move(step));
  }
  explanation.statistics = std::move(statistics);
  return explanation;
}

std::string to_string(const Explanation& explanation) {
  std::ostringstream out;
  out << explanation.replicas << " replica(s), " << explanation.operations << " operations, "
      << explanation.steps.size() << " steps\n";
  print_bits(out, explanation);
  print_machine(out, explanation);
  const bool has_times = !explanation.statistics.predicted.empty();
  for (const ExplainedStep& step : explanation.steps) print_step(out, step, has_times);
  return out.str();
}

}  // namespace samegrad
