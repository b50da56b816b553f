// From a program to plain data.
#include <pybind11/stl.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "bind/convert.h"
#include "bind/saved_graph.h"
#include "ir/regions.h"
#include "ops/gradient_rule.h"
#include "passes/core_ops.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// NotImplementedError for an operation that only this process, or this run, can do.
void check_exportable(const Graph& graph, const std::string& op_name) {
  if (graph.replicas != 1) {
    fail(ErrorKind::kNotImplemented, op_name,
         "a function that is exported runs on one replica: got one on ", graph.replicas,
         ", as it calls strategy.run or reads an ON_READ variable; export what strategy.run "
         "calls.");
  }
  walk_nodes(graph, [&](const Graph& inside, const Node& node) {
    const char* why = is_for_some_replicas(*node.op)             ? "it crosses replicas"
                      : node.attrs.get_if<CalledGradientAttrs>() ? "its gradient is an error"
                      : node.op->version == OpDef::kOfPasses     ? "it is the engine's own"
                                                                 : nullptr;
    if (!why) return;
    const auto at = std::size_t(node.location);
    const std::string line = at < inside.locations.size() ? " (" + inside.locations[at] + ")" : "";
    fail(ErrorKind::kNotImplemented, op_name, "the operation '", node.op->name,
         "' cannot be exported, as ", why, line, "; leave it out of functions that are exported.");
  });
}

class GraphWriter {
 public:
  GraphWriter(const Graph& graph, std::vector<Array>& constants)
      : graph_(graph), constants_(constants), numbers_(graph.values.size(), -1) {}

  py::dict write() {
    py::dict data;
    data["arguments"] = graph_.arguments.size();
    data["sources"] = sources();
    data["nodes"] = nodes();
    data["outputs"] = values(graph_.outputs);
    py::list calls;
    for (const CallRange& call : graph_.calls) {
      if (!call.end.exists() || call.begin == call.end) continue;
      calls.append(py::make_tuple(call.begin.number(), call.end.number()));
    }
    if (!calls.empty()) data["calls"] = calls;
    return data;
  }

  // The whole program.
  py::dict write_program() {
    py::dict data = write();
    data["version"] = kGraphVersion;
    py::list symbols, guards, variables;
    for (const Symbol& symbol : graph_.symbols) symbols.append(write(symbol));
    for (const LengthGuard& guard : graph_.symbols.guards) guards.append(write(guard));
    for (SlotId slot : graph_.variables.ids()) variables.append(graph_.variables[slot].name);
    data["symbols"] = symbols;
    data["guards"] = guards;
    data["variables"] = variables;
    data["writes"] = writes(graph_.writes);
    data["rereads"] = writes(graph_.rereads);
    py::dict versions;
    walk_nodes(graph_, [&](const Graph&, const Node& node) {
      versions[py::str(node.op->name)] = node.op->version;
    });
    data["operations"] = versions;
    return data;
  }

 private:
  py::object dim(std::int64_t dim) const {
    if (dim == kBatchDim) return py::none();
    return integer(dim);
  }

  // An integer of an attribute, which may be a size with a symbol.
  py::object integer(std::int64_t number) const {
    const auto symbol = std::size_t(number - kSymbols);
    if (is_symbolic(number) && symbol < graph_.symbols.size()) return py::str(name(int(symbol)));
    return py::int_(number);
  }

  static std::string name(int symbol) { return "s" + std::to_string(symbol); }

  static py::list write(const Size& size) {
    py::list terms;
    for (const auto& [factors, coefficient] : size.terms()) {
      py::list names;
      for (int factor : factors) names.append(name(factor));
      terms.append(py::make_tuple(coefficient, names));
    }
    return terms;
  }

  static py::dict write(const Symbol& symbol) {
    py::dict data;
    data["kind"] = kSymbolKinds[std::size_t(symbol.kind)];
    const bool given = symbol.kind == Symbol::Kind::kInput || symbol.kind == Symbol::Kind::kLength;
    if (given) data["count"] = symbol.traced_count;
    if (symbol.kind == Symbol::Kind::kSize) data["size"] = write(symbol.size);
    if (!symbol.parts.empty()) {
      py::list parts;
      for (int part : symbol.parts) parts.append(name(part));
      data["parts"] = parts;
    }
    if (symbol.kind == Symbol::Kind::kSlice || symbol.kind == Symbol::Kind::kQuotient) {
      data["range"] = py::make_tuple(symbol.begin, symbol.end, symbol.step);
    }
    if (symbol.fixed) data["fixed"] = true;
    return data;
  }

  static py::dict write(const LengthGuard& guard) {
    const auto found = std::ranges::find_if(kRelations, [&](const Relation& relation) {
      const auto same = [&](std::int64_t n) {
        return relation.holds(n) == (guard.holds(n) == guard.outcome);
      };
      return same(-1) && same(0) && same(1);
    });
    SG_ASSERT(found != kRelations.end(), "a guard is none of the relations to 0");
    py::dict data;
    data["size"] = write(guard.size);
    data["relation"] = found->name;
    data["line"] = guard.location;
    return data;
  }

  py::dict write(const ValueType& type) const {
    py::dict data;
    data["dtype"] = name_of(type.dtype);
    py::list shape;
    for (std::int64_t size : type.shape) shape.append(dim(size));
    data["shape"] = shape;
    if (type.batched()) {
      data["examples"] = py::make_tuple(type.batch.axis, integer(type.batch.rows_per_example),
                                        name(type.batch.symbol));
    }
    return data;
  }

  // Values are numbered in the order of the file: sources, then results.
  py::list sources() {
    py::list data;
    for (Value v : graph_.values.ids()) {
      const ValueInfo& info = graph_.values[v];
      if (info.source == Source::kNode) continue;
      py::dict source = write(info.type);
      if (info.source == Source::kArgument) source["argument"] = info.argument();
      if (info.source == Source::kVariable) source["variable"] = info.slot().index();
      if (info.source == Source::kConstant) {
        source["constant"] = constants_.size();
        constants_.push_back(graph_.constants[info.constant()]);
      }
      numbers_[v] = next_++;
      data.append(source);
    }
    return data;
  }

  py::list nodes() {
    py::list data;
    for (const Node& node : graph_.nodes) {
      py::dict one;
      one["operation"] = node.op->name;
      one["inputs"] = values(node.inputs);
      one["results"] = node.outputs.size();
      py::dict attributes;
      for (std::size_t i = 0; i < node.attrs.fields(); ++i) {
        attributes[node.attrs.schema()->fields[i].name] = attribute(node.attrs.field(i));
      }
      if (!attributes.empty()) one["attributes"] = attributes;
      py::list regions;
      for (const GraphPtr& region : node.regions) {
        regions.append(GraphWriter(*region, constants_).write());
      }
      if (!regions.empty()) one["regions"] = regions;
      if (node.derivative) one["derivative"] = true;
      for (Value output : node.outputs) numbers_[output] = next_++;
      data.append(one);
    }
    return data;
  }

  py::object attribute(const AttrView& view) const {
    if (const auto* number = std::get_if<const std::int64_t*>(&view)) return integer(**number);
    if (const auto* numbers = std::get_if<const Ints*>(&view)) {
      py::list list;
      for (std::int64_t number : **numbers) list.append(integer(number));
      return list;
    }
    return python_from_attr(view);
  }

  py::list values(const std::vector<Value>& values) const {
    py::list data;
    for (Value value : values) data.append(numbers_[value]);
    return data;
  }

  py::list writes(const std::vector<StateWrite>& writes) const {
    py::list data;
    for (const StateWrite& write : writes) {
      data.append(py::make_tuple(write.variable.index(), numbers_[write.value]));
    }
    return data;
  }

  const Graph& graph_;
  std::vector<Array>& constants_;
  PerValue<int> numbers_;
  int next_ = 0;
};

}  // namespace

py::dict data_of_graph(const Graph& graph, std::vector<Array>& constants,
                       const std::string& op_name) {
  check_exportable(graph, op_name);
  return GraphWriter(core_ops(graph), constants).write_program();
}

}  // namespace samegrad
