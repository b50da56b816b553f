#include <sstream>

#include "analysis/departures.h"
#include "ops/attributes.h"
#include "plan/plan.h"

namespace samegrad {
namespace {

void print_nodes(std::ostringstream& out, const Plan& plan, const std::vector<std::int32_t>& nodes,
                 bool in_loop) {
  for (std::int32_t n : nodes) {
    const Node& node = plan.graph.nodes[std::size_t(n)];
    out << "    %" << node.outputs[0] << " " << node.op->name << " "
        << to_string(plan.graph.type(node.outputs[0]))
        << suffix_of(plan.graph.placement(node.outputs[0]));
    if (!in_loop && node.locality == Locality::kTree) out << " deferred from the loop";
    if (const auto* named = node.attrs.get_if<NamedAttrs>()) out << ": '" << named->names << "'";
    out << "\n";
  }
}

void print_loop(std::ostringstream& out, const Plan& plan, const Loop& loop) {
  out << "  loop over the examples" << (loop.varying ? " of each replica" : "") << ", "
      << loop.trees.size() << " tree reductions";
  for (const Loop::Inner& inner : loop.inner) {
    out << ", nodes " << inner.begin << "-" << inner.end - 1 << " one example at a time";
  }
  out << ":\n";
  print_nodes(out, plan, loop.nodes, true);
}

const char* title_of(const PlanStep& step) {
  switch (step.kind) {
    case PlanStep::Kind::kAllReduce:
      return "all-reduce";
    case PlanStep::Kind::kRows:
      return "rows of all replicas";
    case PlanStep::Kind::kReduceUpdate:
      return "block by block";
    case PlanStep::Kind::kNameRows:
      return "rows that have a gradient";
    case PlanStep::Kind::kRowUpdate:
      return "sparse, row by row";
    default:
      return "once";
  }
}

// Promise of the tree: said where it holds, and why where it does not.
void print_bits(std::ostringstream& out, const Plan& plan) {
  if (plan.graph.replicas == 1) {
    out << "bits: the reference that replicas are compared with\n";
    return;
  }
  const std::vector<std::string> reasons = departures(plan.graph);
  if (reasons.empty()) {
    out << "bits: those of one replica, if all shares are equal and have at least 3 examples, or "
           "are made with split='balanced'"
        << (plan.graph.replicas == 2 ? ", or any with at least 3\n" : "\n");
    return;
  }
  out << "bits: may differ from those of one replica (by rounding, or more where this is meant):\n";
  for (const std::string& reason : reasons) out << "  - " << reason << "\n";
}

}  // namespace

std::string explain(const Plan& plan) {
  std::ostringstream out;
  out << plan.graph.replicas << " replica(s), " << plan.graph.nodes.size() << " operations, "
      << plan.steps.size() << " steps\n";
  print_bits(out, plan);
  for (const PlanStep& step : plan.steps) {
    if (step.kind == PlanStep::Kind::kLoop) {
      print_loop(out, plan, plan.loops[std::size_t(step.index)]);
    } else if (step.kind == PlanStep::Kind::kNameRows) {
      out << "  " << title_of(step) << ": of";
      for (std::int32_t n : step.nodes) {
        out << " %" << plan.graph.nodes[std::size_t(n)].outputs[0];
      }
      out << "\n";
    } else {
      out << "  " << title_of(step) << ":\n";
      print_nodes(out, plan, step.nodes, false);
    }
  }
  return out.str();
}

}  // namespace samegrad
