// Runs a graph without an executor.
#pragma once

#include "ops/op_run.h"

namespace samegrad::testing {

// Runs a graph node by node on whole arrays.
class Interpreter {
 public:
  Interpreter(const Graph& graph, std::int64_t examples) : graph_(graph) {
    std::vector<std::int64_t>& counts = replica_context_.local_examples;
    counts.assign(graph.symbols.size(), examples);
    complete_counts(graph.symbols, counts);
    replica_context_.global_examples = counts;
    replica_context_.first_example.assign(counts.size(), 0);
  }

  // The arrays of all values.
  PerValue<Array> run(const std::vector<Array>& arguments) const {
    PerValue<Array> arrays(graph_.values.size());
    for (Value i : graph_.values.ids()) {
      const ValueInfo& info = graph_.values[i];
      if (info.source == Source::kArgument) arrays[i] = arguments[info.argument()];
      if (info.source == Source::kConstant) arrays[i] = graph_.constants[info.constant()];
    }
    for (const Node& node : graph_.nodes) run_node(node, arrays);
    return arrays;
  }

 private:
  View view(Value value, const Array& array) const {
    View result{array.raw(), array.shape(), array.dtype()};
    result.example_axis = graph_.type(value).batch.axis;
    result.rows_per_example = graph_.type(value).batch.rows_per_example;
    return result;
  }

  void run_node(const Node& node, PerValue<Array>& arrays) const {
    std::vector<View> in, out;
    std::int64_t examples = 0;
    for (Value value : node.inputs) {
      in.push_back(view(value, arrays[value]));
      const ExampleAxis& batch = graph_.type(value).batch;
      if (batch.exists() && !examples) {
        examples = replica_context_.local_examples[std::size_t(batch.symbol)];
      }
    }
    for (Value value : node.outputs) {
      Array& array = arrays[value];
      array = Array(graph_.type(value).dtype,
                    concrete_shape(graph_.type(value), replica_context_.local_examples));
      out.push_back(view(value, array));
    }
    Scratch scratch;
    const KernelArgs args{.attrs = node.attrs,
                          .in = in,
                          .out = out,
                          .examples = examples,
                          .replica_context = replica_context_,
                          .scratch = scratch};
    if (node.locality == Locality::kBatchReduction) {
      fold_examples(node.op->tree, args);
    } else {
      node.op->kernel(args);
    }
  }

  const Graph& graph_;
  ReplicaContext replica_context_;
};

}  // namespace samegrad::testing
