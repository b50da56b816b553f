#include <sstream>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace samegrad {
namespace {

std::string source_name(const Graph& graph, const ValueInfo& info) {
  if (info.source == Source::kArgument) return "argument " + std::to_string(info.index);
  if (info.source == Source::kConstant) return "constant";
  return "variable " + graph.variables[info.slot()].name;
}

}  // namespace

const char* suffix_of(Placement placement) {
  constexpr const char* kSuffixes[] = {"", ", rows", ", partial", ", own"};
  return kSuffixes[int(placement)];
}

std::string to_string(const Graph& graph) {
  std::ostringstream out;
  for (Value value : graph.values.ids()) {
    const ValueInfo& info = graph.values[value];
    if (info.source == Source::kNode) continue;
    out << "%" << value << " = " << source_name(graph, info) << " : " << to_string(info.type)
        << suffix_of(info.placement) << "\n";
  }
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      out << (i ? ", %" : "%") << node.outputs[i];
    out << (node.outputs.empty() ? "" : " = ") << node.op->name << "(";
    for (std::size_t i = 0; i < node.inputs.size(); ++i) out << (i ? ", %" : "%") << node.inputs[i];
    for (std::size_t i = 0; i < node.regions.size(); ++i) {
      out << ", " << node.op->regions[i] << "=graph at " << node.regions[i].get();
    }
    if (node.attrs.fields() > 0) out << ", " << to_string(node.attrs);
    out << ")";
    if (!node.outputs.empty()) {
      out << " : " << to_string(graph.type(node.outputs[0]))
          << suffix_of(graph.placement(node.outputs[0]));
    }
    const std::string line = node.location < 0 ? "" : graph.locations[std::size_t(node.location)];
    if (!line.empty()) out << "  # " << line;
    out << "\n";
  }
  out << "return";
  for (Value output : graph.outputs) out << " %" << output;
  for (const StateWrite& write : graph.writes) {
    out << "\n" << graph.variables[write.variable].name << " := %" << write.value;
  }
  return out.str() + "\n";
}

}  // namespace samegrad
