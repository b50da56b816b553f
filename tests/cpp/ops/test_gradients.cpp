// For every row with a gradient: types of the gradients, and float64 finite differences. Backward
// rows are rows too, so this covers derivatives of any order.
#include <cmath>

#include "kernels/table.h"
#include "ops/op_run.h"

namespace samegrad::testing {
namespace {

// Runs a graph node by node on whole arrays.
class Interpreter {
 public:
  explicit Interpreter(const Graph& graph, std::int64_t examples) : graph_(graph) {
    std::vector<std::int64_t>& counts = facts_.local_examples;
    counts.assign(graph.symbols.size(), examples);
    complete_counts(graph.symbols, counts);
    facts_.global_examples = counts;
    facts_.first_example.assign(counts.size(), 0);
  }

  Array run(const std::vector<Array>& arguments, Value wanted) {
    std::vector<Array> arrays(graph_.values.size());
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const ValueInfo& info = graph_.values[i];
      if (info.source == Source::kArgument) arrays[i] = arguments[std::size_t(info.index)];
      if (info.source == Source::kConstant) arrays[i] = graph_.constants[std::size_t(info.index)];
    }
    for (const Node& node : graph_.nodes) run_node(node, arrays);
    return arrays[std::size_t(wanted)];
  }

 private:
  View view(Value value, const Array& array) const {
    View result{array.raw(), array.shape(), array.dtype()};
    result.example_axis = graph_.type(value).batch.axis;
    result.rows_per_example = graph_.type(value).batch.rows_per_example;
    return result;
  }

  void run_node(const Node& node, std::vector<Array>& arrays) const {
    std::vector<View> in, out;
    std::int64_t examples = 0;
    for (Value value : node.inputs) {
      in.push_back(view(value, arrays[std::size_t(value)]));
      const ExampleAxis& batch = graph_.type(value).batch;
      if (batch.exists() && !examples) {
        examples = facts_.local_examples[std::size_t(batch.symbol)];
      }
    }
    for (Value value : node.outputs) {
      Array& array = arrays[std::size_t(value)];
      array = Array(graph_.type(value).dtype,
                    concrete_shape(graph_.type(value), facts_.local_examples));
      out.push_back(view(value, array));
    }
    Scratch scratch;
    node.op->kernel({.attrs = node.attrs,
                     .in = in,
                     .out = out,
                     .examples = examples,
                     .facts = facts_,
                     .scratch = scratch});
  }

  const Graph& graph_;
  StepFacts facts_;
};

// A row with arguments as operands and cotangents, and the gradients that its vjp builds.
struct GradientGraph {
  Graph graph;
  Values in, out, ct, gradients;
  std::vector<Array> arguments;
  std::int64_t examples = 0;

  GradientGraph(const OpDef& op, const Sample& sample) {
    for (std::size_t i = 0; i < sample.shapes.size(); ++i) add_operand(sample, i);
    graph.add_symbol({});
    graph.symbols[0].traced_count = examples;
    Builder b(graph);
    out = b.apply(op, in, sample.attrs);
    const Attrs attrs = graph.nodes.back().attrs;
    std::vector<std::int64_t> counts;
    for (const Symbol& symbol : graph.symbols) counts.push_back(symbol.traced_count);
    for (Value y : out) {
      const ValueType type = graph.type(y);
      if (!is_floating(type.dtype)) {
        ct.push_back(kNoValue);
        continue;
      }
      ct.push_back(graph.add_argument(type, false));
      arguments.push_back(filled(type.dtype, concrete_shape(type, counts), 0.25, 1.75));
    }
    if (op.vjp) gradients = op.vjp({b, attrs, in, out, ct});
  }

  void add_operand(const Sample& sample, std::size_t i) {
    DType dtype = i < sample.dtypes.size() ? sample.dtypes[i] : DType::kFloat64;
    if (dtype == DType::kFloat32) dtype = DType::kFloat64;
    const Shape shape(sample.shapes[i]);
    arguments.push_back(
        filled(dtype, shape, sample.low, sample.high, std::max(sample.integer_high, 1.0)));
    ValueType type{dtype, shape, {}};
    if (i < sample.batched.size() && sample.batched[i]) {
      examples = shape[0];
      type.shape[0] = kRows;
      type.batch = {0, 1, 0};
    }
    in.push_back(graph.add_argument(type, false));
  }

  // Σ ct · y
  double objective() {
    double sum = 0;
    Interpreter interpreter(graph, examples);
    for (std::size_t k = 0; k < out.size(); ++k) {
      if (ct[k] == kNoValue) continue;
      const Array y = interpreter.run(arguments, out[k]);
      const Array weights = interpreter.run(arguments, ct[k]);
      for (std::int64_t i = 0; i < y.size(); ++i) sum += element(y, i) * element(weights, i);
    }
    return sum;
  }
};

void check_operand(const OpDef& op, GradientGraph& g, std::size_t operand) {
  const Value gradient = g.gradients[operand];
  CHECK(g.graph.type(gradient) == g.graph.type(g.in[operand]), op.name, " operand ", operand,
        " of type ", to_string(g.graph.type(g.in[operand])), " has a gradient of type ",
        to_string(g.graph.type(gradient)));
  const Array found = Interpreter(g.graph, g.examples).run(g.arguments, gradient);
  const Array& x = g.arguments[operand];
  constexpr double kStep = 1e-5;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    double& at = x.data<double>()[i];
    const double center = at;
    at = center + kStep;
    const double above = g.objective();
    at = center - kStep;
    const double below = g.objective();
    at = center;
    const double expected = (above - below) / (2 * kStep);
    const double error = std::abs(element(found, i) - expected);
    CHECK(error <= 1e-6 * (1 + std::abs(expected)), op.name, " operand ", operand, " element ", i,
          ": ", element(found, i), " is not ", expected);
  }
}

TEST("gradients have the operands' types and agree with finite differences") {
  register_all_ops();
  int checked = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    // Broadcast cotangents of elementwise rows are summed by the walk over the graph.
    if (!op->vjp || !op->kernel || op->has(kElementwise) || op->has(kCollective)) continue;
    if (op->has(kRandomOp)) continue;
    for (const Sample& sample : op->samples) {
      try {
        GradientGraph g(*op, sample);
        for (std::size_t i = 0; i < g.in.size(); ++i) {
          if (i >= g.gradients.size() || g.gradients[i] == kNoValue) continue;
          if (g.graph.type(g.in[i]).dtype != DType::kFloat64) continue;
          check_operand(*op, g, i);
          ++checked;
        }
      } catch (const Error& error) {
        check::fail(__FILE__, __LINE__, op->name, ": ", error.what());
      }
    }
  }
  CHECK(checked > 50, checked);
}

// A fused row gives the bits of the rows it is made of.
TEST("decompositions give the same bits as their rows") {
  register_all_ops();
  int checked = 0;
  for (const char* name : {"matmul_bias", "conv2d_bias"}) {
    const OpDef& op = OpRegistry::instance().get(name);
    for (const Sample& sample : op.samples) {
      GradientGraph g(op, sample);
      Builder b(g.graph);
      const Attrs attrs = g.graph.nodes[0].attrs;
      const Values parts = op.decompose({b, attrs, g.in, g.out, g.ct});
      Interpreter interpreter(g.graph, g.examples);
      CHECK(g.graph.type(parts[0]) == g.graph.type(g.out[0]), name);
      CHECK(
          same_bits(interpreter.run(g.arguments, parts[0]), interpreter.run(g.arguments, g.out[0])),
          name);
      ++checked;
    }
  }
  CHECK_EQ(checked, 6);
}

}  // namespace
}  // namespace samegrad::testing
