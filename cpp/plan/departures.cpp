// Where a program leaves the promise that any 2^j replicas give the bits of one device: one walk
// that follows what happens to each replica's sums until their all-reduce.
#include <algorithm>

#include "base/error.h"
#include "plan/plan.h"

namespace samegrad {
namespace {

// What a value is on a replica, compared with one device that has all the examples.
struct Standing {
  enum class Kind : std::uint8_t {
    kSame,  // equal on all replicas, and there
    kRows,  // the replica's rows of it
    kPart,  // a subtree of its sum over the examples
    kOther  // none of these
  } kind = Kind::kSame;
  std::string reason = {};  // of kOther
};
using Kind = Standing::Kind;

class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph), standing_(graph.values.size()) {
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      const ValueInfo& info = graph.values[v];
      if (info.source != Source::kNode && info.varying) standing_[v] = of_source(info);
    }
    for (const Node& node : graph.nodes) {
      Standing result = of_node(node);
      for (Value output : node.outputs) standing_[std::size_t(output)] = result;
    }
  }

  std::vector<std::string> reasons() const {
    std::vector<std::string> found;
    for (Value output : graph_.outputs) note(output, found);
    for (const StateWrite& write : graph_.writes) note(write.value, found);
    return found;
  }

 private:
  // A result that stays with each replica promises nothing.
  void note(Value value, std::vector<std::string>& found) const {
    const Standing& standing = standing_[std::size_t(value)];
    if (graph_.varying(value) || standing.kind != Kind::kOther) return;
    if (std::find(found.begin(), found.end(), standing.reason) == found.end()) {
      found.push_back(standing.reason);
    }
  }

  Standing of_source(const ValueInfo& info) const {
    if (info.type.batched()) return {Kind::kRows};
    return {Kind::kOther, info.source == Source::kVariable
                              ? text("variable ", variable_name(info), " has a value per replica")
                              : std::string("an argument has a value per replica")};
  }

  std::string variable_name(const ValueInfo& info) const {
    return "'" + graph_.variables[std::size_t(info.index)].name + "'";
  }

  Standing of_node(const Node& node) const {
    bool rows = false, part = false;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Standing& operand = standing_[std::size_t(node.inputs[k])];
      const bool type_only = !node.op->reads(k);
      rows |= operand.kind == Kind::kRows;
      part |= operand.kind == Kind::kPart && !type_only;
      if (operand.kind == Kind::kOther && !type_only) return operand;
    }
    const ValueInfo& result = graph_.values[std::size_t(node.outputs[0])];
    if (node.op->exchange) return of_exchange(node, rows, part);
    if (node.op->has(kCollective)) return of_collective(node, part);
    if (node.op->has(kGlobalFact)) return {};
    if (part && node.op->has(kAliases)) return {Kind::kPart};
    if (part) return other(node, "changes a replica's sum before the all-reduce");
    if (node.locality == Locality::kTree) return {rows ? Kind::kPart : Kind::kSame};
    if (result.type.batched() && node.locality == Locality::kExample) {
      return {result.varying ? Kind::kRows : Kind::kSame};
    }
    if (rows && node.op->type_only) return other(node, "reads the replica's number of examples");
    if (rows) return other(node, "needs all examples of a replica");
    if (result.varying && node.inputs.empty()) {
      return result.type.batched() ? Standing{Kind::kRows} : other(node, "differs by replica");
    }
    return {};
  }

  Standing of_collective(const Node& node, bool part) const {
    const AttrValue* how = node.attrs.find("op");
    const bool mean = how && *how == AttrValue(std::string("mean"));
    return part && mean ? other(node, "takes the mean of the replicas' sums") : Standing{};
  }

  Standing of_exchange(const Node& node, bool rows, bool part) const {
    if (graph_.varying(node.outputs[0])) return {Kind::kRows};
    if (part || !rows) return other(node, "has a part for each replica");
    return {};
  }

  Standing other(const Node& node, const char* what) const {
    std::string at;
    if (node.location >= 0) at = graph_.locations[std::size_t(node.location)];
    if (!at.empty()) at = " (" + at + ")";
    const AttrValue* names = node.attrs.find("names");
    const std::string name = names ? std::get<std::string>(*names) : node.op->name;
    return {Kind::kOther, text(name, at, " ", what)};
  }

  const Graph& graph_;
  std::vector<Standing> standing_;
};

}  // namespace

std::vector<std::string> departures(const Graph& graph) {
  std::vector<std::string> reasons;
  if (graph.replicas == 1) return reasons;
  if ((graph.replicas & (graph.replicas - 1)) != 0) {
    reasons.push_back(text(graph.replicas, " replicas are no power of two"));
  }
  for (std::string& reason : Walk(graph).reasons()) reasons.push_back(std::move(reason));
  return reasons;
}

}  // namespace samegrad
