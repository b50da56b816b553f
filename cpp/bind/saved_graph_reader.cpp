// From plain data, which may be anything, to a program.
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "bind/convert.h"
#include "bind/saved_graph.h"
#include "bind/saved_graph_control.h"
#include "ops/gradient_rule.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// Sizes are looked up in lists of this length; all regions together have so many symbols.
constexpr std::size_t kMaxSymbols = 4096;
constexpr std::size_t kMaxInRegions = std::size_t(1) << 22;
constexpr std::int64_t kMaxCount = std::int64_t(1) << 40;
constexpr std::size_t kMaxFactors = 16;

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  fail(ErrorKind::kValue, kSavedModel, "the graph of a function is damaged: ", parts...,
       "; save the model again.");
}

bool has(const py::dict& data, const char* name) {
  return data.contains(name);
}

py::handle field(const py::dict& data, const char* name) {
  PyObject* found = PyDict_GetItemString(data.ptr(), name);
  if (!found) refuse("'", name, "' is missing");
  return found;
}

py::dict as_dict(const py::handle& value) {
  if (!PyDict_CheckExact(value.ptr())) refuse("a dict is expected where there is ", shown(value));
  return py::reinterpret_borrow<py::dict>(value);
}

// JSON's lists, or the tuples of data that was not in a file.
py::tuple as_list(const py::handle& value) {
  if (!PyList_CheckExact(value.ptr()) && !PyTuple_CheckExact(value.ptr())) {
    refuse("a list is expected where there is ", shown(value));
  }
  return py::reinterpret_steal<py::tuple>(PySequence_Tuple(value.ptr()));
}

std::string as_string(const py::handle& value) {
  if (!PyUnicode_CheckExact(value.ptr())) refuse("a string is expected, not ", shown(value));
  try {
    return py::cast<std::string>(value);
  } catch (const py::error_already_set&) {
    refuse("a string has other bytes than UTF-8");
  } catch (const py::cast_error&) {
    refuse("a string has other bytes than UTF-8");
  }
}

std::int64_t as_integer(const py::handle& value, std::int64_t low, std::int64_t high) {
  int overflow = 0;
  const bool whole = PyLong_CheckExact(value.ptr());
  const long long number = whole ? PyLong_AsLongLongAndOverflow(value.ptr(), &overflow) : 0;
  if (!whole || overflow != 0 || number < low || number > high) {
    refuse("an integer from ", low, " to ", high, " is expected, not ", shown(value));
  }
  return number;
}

std::size_t as_index(const py::handle& value, std::size_t size) {
  if (size == 0) refuse("an index is expected of nothing");
  return std::size_t(as_integer(value, 0, std::int64_t(size) - 1));
}

bool flag(const py::dict& data, const char* name) {
  if (!has(data, name)) return false;
  if (field(data, name).ptr() != Py_True) refuse("'", name, "' is true, or left out");
  return true;
}

// "s12" of so many symbols.
int as_symbol(const py::handle& value, std::size_t symbols) {
  const std::string name = as_string(value);
  const bool plain =
      name.size() > 1 && name.size() < 8 && name[0] == 's' &&
      std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
  const std::size_t index = plain ? std::stoul(name.substr(1)) : symbols;
  if (index >= symbols) refuse("a size is called ", name.substr(0, 20), ", which it lacks");
  return int(index);
}

Size as_size(const py::handle& value, std::size_t symbols) {
  Size size;
  for (const py::handle given : as_list(value)) {
    const py::tuple term = as_list(given);
    if (term.size() != 2) refuse("a term has a coefficient and symbols");
    Size product = as_integer(term[0], -kMaxCount, kMaxCount);
    const py::tuple factors = as_list(term[1]);
    if (factors.size() > kMaxFactors) refuse("a term has too many symbols");
    for (const py::handle factor : factors) {
      product = product * Size::of_symbol(as_symbol(factor, symbols));
    }
    size = size + product;
  }
  return size;
}

class SymbolReader {
 public:
  explicit SymbolReader(const py::dict& data) : data_(data) {}

  Symbols read() {
    const py::tuple symbols = as_list(field(data_, "symbols"));
    if (symbols.size() > kMaxSymbols) refuse("it has ", symbols.size(), " sizes");
    for (const py::handle each : symbols) add(as_dict(each));
    const Counts counts = counts_of_all(symbols_);
    for (std::size_t s = 0; s < symbols_.size(); ++s) symbols_[s].traced_count = counts[0][s];
    for (const py::handle each : as_list(field(data_, "guards"))) guard(as_dict(each));
    return std::move(symbols_);
  }

 private:
  void add(const py::dict& data) {
    Symbol symbol;
    const std::string kind = as_string(field(data, "kind"));
    const auto found = std::ranges::find(kSymbolKinds, kind);
    if (found == kSymbolKinds.end()) refuse("a size is of kind ", kind.substr(0, 20));
    symbol.kind = Symbol::Kind(found - kSymbolKinds.begin());
    symbol.fixed = flag(data, "fixed");
    const std::size_t known = symbols_.size();
    switch (symbol.kind) {
      case Symbol::Kind::kInput:
      case Symbol::Kind::kLength:
        symbol.traced_count = as_integer(field(data, "count"), 0, kMaxCount);
        break;
      case Symbol::Kind::kSize:
        symbol.size = as_size(field(data, "size"), known);
        break;
      default:
        for (const py::handle part : as_list(field(data, "parts"))) {
          symbol.parts.push_back(as_symbol(part, known));
        }
        check_parts(symbol);
    }
    const bool slice = symbol.kind == Symbol::Kind::kSlice;
    if (slice || symbol.kind == Symbol::Kind::kQuotient) read_range(data, symbol);
    symbols_.push_back(std::move(symbol));
  }

  static void check_parts(const Symbol& symbol) {
    const bool one = symbol.kind != Symbol::Kind::kSum;
    if (symbol.parts.empty() || (one && symbol.parts.size() != 1)) {
      refuse("a size is made of ", symbol.parts.size(), " others");
    }
  }

  static void read_range(const py::dict& data, Symbol& symbol) {
    const py::tuple range = as_list(field(data, "range"));
    if (range.size() != 3) refuse("a range has begin, end and step");
    symbol.begin = as_integer(range[0], INT64_MIN, INT64_MAX);
    symbol.end = as_integer(range[1], INT64_MIN, INT64_MAX);
    symbol.step = as_integer(range[2], -kMaxCount, kMaxCount);
    const bool quotient = symbol.kind == Symbol::Kind::kQuotient;
    if (symbol.step == 0 || (quotient && symbol.step < 0)) refuse("the step of a size is 0");
  }

  // Takes for granted again what the trace did, so that the symbols know it.
  void guard(const py::dict& data) {
    const std::string name = as_string(field(data, "relation"));
    const auto found = std::ranges::find_if(
        kRelations, [&](const Relation& relation) { return name == relation.name; });
    if (found == kRelations.end()) refuse("a relation of sizes is ", name.substr(0, 20));
    const Size size = as_size(field(data, "size"), symbols_.size());
    if (!decide(symbols_, size, found->holds))
      refuse("what it takes for granted is not true of it");
    for (LengthGuard& guard : symbols_.guards) {
      if (guard.location.empty()) guard.location = as_string(field(data, "line"));
    }
  }

  const py::dict& data_;
  Symbols symbols_;
};

class GraphReader {
 public:
  GraphReader(const std::vector<Array>& constants, const py::dict& versions)
      : constants_(constants), versions_(versions) {}

  Graph read_program(const py::dict& data) {
    Graph graph;
    graph.symbols = SymbolReader(data).read();
    for (const py::handle name : as_list(field(data, "variables"))) {
      graph.variables.push_back({as_string(name)});
    }
    Histories histories;
    read_into(data, graph, histories, nullptr);
    graph.writes = writes(data, "writes", graph);
    graph.rereads = writes(data, "rereads", graph);
    return graph;
  }

 private:
  void read_into(const py::dict& data, Graph& graph, Histories& histories, const Graph* outer) {
    const py::tuple sources = as_list(field(data, "sources"));
    const std::int64_t most = std::int64_t(sources.size()) + 4096;
    graph.arguments.resize(std::size_t(as_integer(field(data, "arguments"), 0, most)));
    for (const py::handle each : sources) {
      source(as_dict(each), graph, outer);
      const ValueInfo& info = graph.values.back();
      const Value value(graph.values.size() - 1);
      if (info.source == Source::kArgument) histories.enter(info.argument(), value);
    }
    Builder builder(graph);
    for (const py::handle each : as_list(field(data, "nodes"))) {
      node(as_dict(each), builder, histories);
    }
    graph.outputs = values(field(data, "outputs"), graph);
    histories.check_none(graph.outputs);
    if (has(data, "calls")) calls(as_list(field(data, "calls")), graph);
  }

  void source(const py::dict& data, Graph& graph, const Graph* outer) {
    ValueInfo info;
    info.type = type(data, graph);
    if (has(data, "argument")) {
      info.source = Source::kArgument;
      info.index = std::int32_t(as_index(field(data, "argument"), graph.arguments.size()));
    } else if (has(data, "variable")) {
      if (outer) refuse("a body reads a variable");
      info.source = Source::kVariable;
      info.index = std::int32_t(as_index(field(data, "variable"), graph.variables.size()));
    } else {
      info.source = Source::kConstant;
      info.index = std::int32_t(graph.constants.size());
      const Array& array = constants_[as_index(field(data, "constant"), constants_.size())];
      if (info.type.batched() || array.dtype() != info.type.dtype ||
          array.shape() != info.type.shape) {
        refuse("a constant is called ", to_string(info.type), " and is ", name_of(array.dtype()),
               " ", to_string(array.shape()));
      }
      graph.constants.push_back(array);
    }
    graph.values.push_back(info);
  }

  static ValueType type(const py::dict& data, const Graph& graph) {
    ValueType type;
    const std::string dtype = as_string(field(data, "dtype"));
    type.dtype = dtype_from_name(dtype);
    const py::tuple shape = as_list(field(data, "shape"));
    if (shape.size() > std::size_t(kMaxRank)) refuse("a shape has ", shape.size(), " axes");
    const std::size_t symbols = graph.symbols.size();
    int rows = -1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const py::handle size = shape[axis];
      if (size.is_none()) {
        if (rows >= 0) refuse("two axes of a shape count examples");
        rows = int(axis);
        type.shape.push_back(kBatchDim);
      } else {
        type.shape.push_back(PyUnicode_CheckExact(size.ptr()) ? kSymbols + as_symbol(size, symbols)
                                                              : as_integer(size, 0, kMaxCount));
      }
    }
    if (rows >= 0) {
      const py::tuple examples = as_list(field(data, "examples"));
      if (examples.size() != 3) refuse("examples have an axis, rows and a count");
      (void)as_integer(examples[0], rows, rows);
      type.batch.axis = rows;
      type.batch.rows_per_example = as_integer(examples[1], 1, kMaxCount);
      type.batch.symbol = as_symbol(examples[2], symbols);
    }
    if (rows < 0 && !type.shape.symbolic()) (void)size_in_bytes(type.dtype, type.shape);
    return type;
  }

  void node(const py::dict& data, Builder& builder, Histories& histories) {
    const OpDef& op = operation(as_string(field(data, "operation")));
    Graph& graph = builder.graph();
    const Values inputs = values(field(data, "inputs"), graph);
    const std::int64_t results = as_integer(field(data, "results"), 0, INT32_MAX);
    Attrs attrs = attributes(op, data, graph);
    if (attrs.get_if<CalledGradientAttrs>()) refuse("'", op.name, "' is a function of Python");
    std::vector<GraphPtr> regions;
    if (has(data, "regions")) {
      for (const py::handle each : as_list(field(data, "regions"))) {
        regions.push_back(
            region(as_dict(each), graph, histories.of_region(inputs, attrs, arguments_of(each))));
      }
    }
    histories.check(op, graph, inputs, attrs, regions);
    const Values made = builder.apply(op, inputs, std::move(attrs), std::move(regions));
    if (std::int64_t(made.size()) != results) {
      refuse("'", op.name, "' has ", made.size(), " results, not ", results);
    }
    histories.add(graph);
    if (flag(data, "derivative")) graph.nodes.back().derivative = true;
  }

  const OpDef& operation(const std::string& name) const {
    const OpDef* op = OpRegistry::instance().find(name);
    if (!op || op->version == OpDef::kOfPasses || is_for_some_replicas(*op)) {
      fail(ErrorKind::kValue, kSavedModel, "the operation '", name.substr(0, 60),
           "' is not known here: load it with the samegrad that saved it.");
    }
    const std::int64_t version = as_integer(field(versions_, name.c_str()), INT64_MIN, INT64_MAX);
    if (version != op->version) {
      fail(ErrorKind::kValue, kSavedModel, "the operation '", name, "' must be of version ",
           op->version, ": got ", version, "; load it with the samegrad that saved it.");
    }
    return *op;
  }

  Attrs attributes(const OpDef& op, const py::dict& node, const Graph& graph) const {
    AttrDraft draft(op.name, op.attrs);
    if (!has(node, "attributes")) return draft.finish();
    const py::dict given = as_dict(field(node, "attributes"));
    const auto specs = op.attrs ? op.attrs->fields : std::span<const AttrSpec>();
    if (given.size() > specs.size()) refuse("'", op.name, "' has other attributes");
    for (const auto& [key, value] : given) {
      const std::string name = as_string(key);
      const auto spec =
          std::ranges::find_if(specs, [&](const AttrSpec& each) { return each.name == name; });
      if (spec == specs.end()) refuse("'", op.name, "' has no attribute ", name.substr(0, 60));
      set(draft, op, *spec, value, graph);
    }
    return draft.finish();
  }

  static void set(AttrDraft& draft, const OpDef& op, const AttrSpec& spec, const py::handle& value,
                  const Graph& graph) {
    if (spec.kind == AttrKind::kInteger) return draft.set(spec.name, integer(value, graph));
    if (spec.kind == AttrKind::kIntegers) {
      Ints numbers;
      for (const py::handle each : as_list(value)) numbers.push_back(integer(each, graph));
      return draft.set(spec.name, std::move(numbers));
    }
    set_from_python(draft, op.name, spec, value);
  }

  static std::int64_t integer(const py::handle& value, const Graph& graph) {
    if (PyUnicode_CheckExact(value.ptr())) return kSymbols + as_symbol(value, graph.symbols.size());
    const std::int64_t number = as_integer(value, INT64_MIN, INT64_MAX);
    if (is_symbolic(number)) refuse("an attribute is ", number);
    return number;
  }

  static std::size_t arguments_of(const py::handle& region) {
    return std::size_t(as_integer(field(as_dict(region), "arguments"), 0, INT32_MAX));
  }

  GraphPtr region(const py::dict& data, Graph& outer, Histories inside) {
    Graph graph;
    graph.symbols = outer.symbols;
    in_regions_ += outer.symbols.size() + 1;
    if (in_regions_ > kMaxInRegions) refuse("its bodies have too many sizes");
    read_into(data, graph, inside, &outer);
    outer.symbols = graph.symbols;
    return std::make_shared<const Graph>(std::move(graph));
  }

  static Values values(const py::handle& data, const Graph& graph) {
    Values values;
    for (const py::handle each : as_list(data)) {
      values.push_back(Value(as_index(each, graph.values.size())));
    }
    return values;
  }

  static std::vector<StateWrite> writes(const py::dict& data, const char* name,
                                        const Graph& graph) {
    std::vector<StateWrite> writes;
    for (const py::handle each : as_list(field(data, name))) {
      const py::tuple write = as_list(each);
      if (write.size() != 2) refuse("a write has a variable and a value");
      writes.push_back({SlotId(as_index(write[0], graph.variables.size())),
                        Value(as_index(write[1], graph.values.size()))});
    }
    return writes;
  }

  static void calls(const py::tuple& data, Graph& graph) {
    std::size_t before = 0;
    for (const py::handle each : data) {
      const py::tuple range = as_list(each);
      if (range.size() != 2) refuse("a call has a first and a last node");
      const std::size_t begin = as_index(range[0], graph.nodes.size());
      const auto end = std::size_t(
          as_integer(range[1], std::int64_t(begin) + 1, std::int64_t(graph.nodes.size())));
      if (begin < before) refuse("its calls have no order");
      before = begin;
      graph.calls.push_back({NodeId(begin), NodeId(end)});
    }
  }

  const std::vector<Array>& constants_;
  const py::dict& versions_;
  std::size_t in_regions_ = 0;
};

}  // namespace

Graph graph_from_data(const py::dict& data, const std::vector<Array>& constants) {
  if (as_integer(field(data, "version"), INT64_MIN, INT64_MAX) != kGraphVersion) {
    fail(ErrorKind::kValue, kSavedModel, "the graph of a function must be of version ",
         kGraphVersion, ": got ", shown(field(data, "version")),
         "; load it with the samegrad that saved it.");
  }
  const py::dict versions = as_dict(field(data, "operations"));
  Graph graph = GraphReader(constants, versions).read_program(data);
  verify(graph);
  return graph;
}

}  // namespace samegrad
