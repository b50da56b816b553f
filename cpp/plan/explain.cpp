#include "plan/explain.h"

#include <cstdio>
#include <sstream>

#include "analysis/replica_invariance.h"
#include "base/machine.h"
#include "base/thresholds.h"
#include "ops/attributes.h"
#include "plan/cost.h"

namespace samegrad {
namespace {

void print_nodes(std::ostringstream& out, const Plan& plan, const std::vector<NodeId>& nodes,
                 bool in_loop, bool shared = false) {
  for (NodeId n : nodes) {
    const Node& node = plan.graph.nodes[n];
    out << "    %" << node.outputs[0] << " " << node.op->name << " "
        << to_string(plan.graph.type(node.outputs[0]))
        << suffix_of(plan.graph.placement(node.outputs[0]));
    if (!in_loop && node.locality == Locality::kTree) out << " deferred from the loop";
    if (shared && is_shared(plan.graph, node)) out << " by all threads";
    if (const auto* named = node.attrs.get_if<NamedAttrs>()) out << ": '" << named->names << "'";
    out << "\n";
  }
}

std::string reason_of_tile(const Loop& loop) {
  if (streams_weights(loop)) {
    return "each passes through " + text_of_bytes(loop.weight_bytes) + " of weights beyond L2";
  }
  if (!loop.inner.empty()) return "the least, as an example fills L1";
  return "they have " + text_of_bytes(thresholds().tile_bytes) + " of L2";
}

void print_loop(std::ostringstream& out, const Plan& plan, const Loop& loop) {
  const char* whose = loop.joint ? " of all replicas" : loop.varying ? " of each replica" : "";
  out << "  loop over the examples" << whose << ", " << loop.trees.size() << " tree reductions";
  for (const Loop::Inner& inner : loop.inner) {
    out << ", nodes " << inner.begin << "-" << inner.end - 1 << " one example at a time";
  }
  out << ":\n";
  print_nodes(out, plan, loop.nodes, true);
  out << "    tiles of " << loop.tile_examples << " examples, each with "
      << text_of_bytes(loop.example_bytes) << " between the nodes: " << reason_of_tile(loop)
      << "\n";
}

const char* title_of(const Plan& plan, const PlanStep& step) {
  switch (step.kind) {
    case PlanStep::Kind::kAllReduce:
      return "all-reduce";
    case PlanStep::Kind::kNodes:
      return "once, side by side";
    case PlanStep::Kind::kRows:
      return "rows of all replicas";
    case PlanStep::Kind::kReduceUpdate:
      return "block by block";
    case PlanStep::Kind::kNameRows:
      return "rows that have a gradient";
    case PlanStep::Kind::kRowUpdate:
      return plan.row_updates[step.row_update()].leaves_rows_alone
                 ? "sparse, row by row"
                 : "all rows, some at a time, of a sparse gradient";
    case PlanStep::Kind::kRowReduce:
      return "reduced, row by row";
    default:
      return "once";
  }
}

void print_reason(std::ostringstream& out, const Plan& plan, const PlanStep& step) {
  if (step.kind != PlanStep::Kind::kRows) return;
  const Node& node = plan.graph.nodes[step.nodes[0]];
  const Value weights = node.inputs[std::size_t(node.op->prepared_operand)];
  out << "    out of its loop: " << text_of_bytes(example_bytes(plan.graph.type(weights))) << " of "
      << text_of_bytes(plan.loop_weights) << " of weights, where L2 keeps "
      << text_of_bytes(thresholds().loop_weight_bytes) << "\n";
}

std::string text_of_time(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1e-3 ? "%.1f us" : "%.2f ms",
                seconds * (seconds < 1e-3 ? 1e6 : 1e3));
  return text;
}

void print_times(std::ostringstream& out, const RunStatistics& statistics, std::size_t step) {
  if (step < statistics.predicted.size()) {
    out << "    predicted " << text_of_time(statistics.predicted[step]);
    if (step < statistics.measured.size()) {
      const StepTime& time = statistics.measured[step];
      out << ", measured " << text_of_time(time.mean) << " (least " << text_of_time(time.least)
          << ")";
    }
    out << "\n";
  }
}

void print_machine(std::ostringstream& out, const RunStatistics& statistics) {
  out << "machine: " << to_string(machine()) << ", " << statistics.threads << " thread(s)\n";
  out << "memory between steps: " << text_of_bytes(statistics.arena_bytes) << " (of "
      << text_of_bytes(statistics.unshared_bytes) << " without reuse)\n";
  double predicted = 0, measured = 0, least = 0;
  for (double seconds : statistics.predicted) predicted += seconds;
  for (const StepTime& time : statistics.measured) {
    measured += time.mean;
    least += time.least;
  }
  out << "time: predicted " << text_of_time(predicted);
  if (statistics.runs > 0) {
    out << ", measured " << text_of_time(measured) << " (mean of " << statistics.runs
        << " runs that changed nothing; least " << text_of_time(least) << ")";
  }
  out << "\n";
}

// Prints if the step is bitwise identical to one replica, or else the operations that change its
// bits.
void print_bits(std::ostringstream& out, const Graph& program, const Plan& plan) {
  out << "bitwise identical to one replica: ";
  if (plan.graph.replicas == 1) {
    out << "yes, this is one replica\n";
    return;
  }
  const std::vector<std::string> reasons = replica_dependences(program, plan.graph);
  if (reasons.empty()) {
    out << "yes\n";
    return;
  }
  out << "no:\n";
  for (const std::string& reason : reasons) out << "  - " << reason << "\n";
}

}  // namespace

std::string explain(const Graph& program, const Plan& plan, const RunStatistics& statistics) {
  std::ostringstream out;
  out << plan.graph.replicas << " replica(s), " << plan.graph.nodes.size() << " operations, "
      << plan.steps.size() << " steps\n";
  print_bits(out, program, plan);
  print_machine(out, statistics);
  for (StepId s : plan.steps.ids()) {
    const PlanStep& step = plan.steps[s];
    if (step.kind == PlanStep::Kind::kLoop) {
      print_loop(out, plan, plan.loops[step.loop()]);
    } else if (step.kind == PlanStep::Kind::kNameRows) {
      out << "  " << title_of(plan, step) << ": of";
      for (NodeId n : step.nodes) {
        out << " %" << plan.graph.nodes[n].outputs[0];
      }
      out << "\n";
    } else {
      out << "  " << title_of(plan, step) << ":\n";
      print_nodes(out, plan, step.nodes, false,
                  step.kind == PlanStep::Kind::kNode && statistics.threads > 1);
      print_reason(out, plan, step);
    }
    print_times(out, statistics, s.index());
  }
  return out.str();
}

}  // namespace samegrad
