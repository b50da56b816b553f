// Derivatives of every row that has some, first and second order, against differences in float64.
#include <cmath>

#include "autodiff/gradient.h"
#include "ops/interpreter.h"

namespace samegrad::testing {
namespace {

// Other numbers for each of several arrays of one size, so that nothing is compared with itself.
Array distinct(DType dtype, const Shape& shape, std::size_t which, double low, double high,
               double integer_high = 3) {
  const std::int64_t size = shape.size();
  const Array more = filled(dtype, {size + 7 * std::int64_t(which)}, low, high, integer_high);
  return more.rows(0, size).reshaped(shape);
}

// A row applied to arguments, its gradients for given cotangents, and theirs once more.
class Derivatives {
 public:
  Derivatives(const OpDef& op, const Sample& sample) : op_(op) {
    for (std::size_t i = 0; i < sample.shapes.size(); ++i) add_operand(sample, i);
    graph_.add_symbol({});
    graph_.symbols[0].traced_count = examples_;
    Builder b(graph_);
    for (Value y : b.apply(op, operands_, sample.attrs)) {
      // Differences drown in the rounding of narrower floats.
      if (graph_.type(y).dtype == DType::kFloat64) results_.push_back(y);
    }
    gradients_ = differentiate(b, results_, weights_);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (gradients_[i] != kNoValue) known_.push_back(gradients_[i]);
    }
    second_ = differentiate(b, known_, second_weights_);
  }

  // The number of derivatives compared.
  int check() {
    int checked = 0;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      checked += check_source(i, 1, gradients_[i], results_, weights_);
      checked += check_source(i, 2, second_[i], known_, second_weights_);
    }
    return checked;
  }

 private:
  void add_operand(const Sample& sample, std::size_t i) {
    DType dtype = i < sample.dtypes.size() ? sample.dtypes[i] : DType::kFloat64;
    if (dtype == DType::kFloat32) dtype = DType::kFloat64;
    const Shape shape(sample.shapes[i]);
    ValueType type{dtype, shape, {}};
    if (i < sample.batched.size() && sample.batched[i]) {
      examples_ = shape[0];
      type.shape[0] = kBatchDim;
      type.batch = {0, 1, 0};
    }
    const double whole = std::max(sample.integer_high, 1.0);
    operands_.push_back(
        add_argument(type, distinct(dtype, shape, i, sample.low, sample.high, whole)));
    if (dtype == DType::kFloat64 && !(op_.type_only >> i & 1u)) sources_.push_back(operands_[i]);
  }

  Value add_argument(const ValueType& type, const Array& array) {
    arguments_.push_back(array);
    return graph_.add_argument(type);
  }

  // The gradients of Σ weight · target, the weights being arguments.
  Values differentiate(Builder& b, const Values& targets, Values& weights) {
    std::vector<std::int64_t> counts;
    for (const Symbol& symbol : graph_.symbols) counts.push_back(symbol.traced_count);
    for (Value target : targets) {
      const ValueType type = graph_.type(target);
      const Array array =
          distinct(type.dtype, concrete_shape(type, counts), arguments_.size(), 0.25, 1.75);
      weights.push_back(add_argument(type, array));
    }
    if (targets.empty()) return Values(sources_.size(), kNoValue);
    return gradient(b, targets, weights, sources_, [](NodeId) { return true; });
  }

  double weighted_sum(const Values& targets, const Values& weights) const {
    const PerValue<Array> arrays = Interpreter(graph_, examples_).run(arguments_);
    double sum = 0;
    for (std::size_t k = 0; k < targets.size(); ++k) {
      const Array& y = arrays[targets[k]];
      const Array& weight = arrays[weights[k]];
      for (std::int64_t i = 0; i < y.size(); ++i) sum += element(y, i) * element(weight, i);
    }
    return sum;
  }

  // Where no gradient flows, the differences must be zero.
  int check_source(std::size_t source, int order, Value found, const Values& targets,
                   const Values& weights) {
    if (targets.empty()) return 0;
    const Value x = sources_[source];
    Array values;
    if (found != kNoValue) {
      CHECK(graph_.type(found) == graph_.type(x), op_.name, " operand ", source, " of type ",
            to_string(graph_.type(x)), " has a gradient of type ", to_string(graph_.type(found)));
      values = Interpreter(graph_, examples_).run(arguments_)[found];
    }
    Array& at = arguments_[graph_.values[x].argument()];
    for (std::int64_t i = 0; i < at.size(); ++i) {
      const double expected = difference(at.data<double>()[i], targets, weights);
      const double actual = found == kNoValue ? 0 : element(values, i);
      CHECK(std::abs(actual - expected) <= 2e-6 * (1 + std::abs(expected)), op_.name, " operand ",
            source, " element ", i, " order ", order, ": ", actual, ", differences say ", expected);
    }
    return at.size() > 0;
  }

  double difference(double& x, const Values& targets, const Values& weights) {
    constexpr double kStep = 1e-5;
    const double center = x;
    x = center + kStep;
    const double above = weighted_sum(targets, weights);
    x = center - kStep;
    const double below = weighted_sum(targets, weights);
    x = center;
    return (above - below) / (2 * kStep);
  }

  const OpDef& op_;
  Graph graph_;
  std::vector<Array> arguments_;
  std::int64_t examples_ = 0;
  Values operands_, sources_;
  Values results_, weights_, gradients_;
  Values known_, second_weights_, second_;
};

TEST("derivatives of every row agree with differences, first and second order") {
  register_all_ops();
  int checked = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if ((!op->vjp && !op->decompose) || !op->kernel) continue;
    if (op->has(kNoGradient) || op->has(kCollective) || op->has(kRandomOp)) continue;
    for (const Sample& sample : op->samples) {
      try {
        checked += Derivatives(*op, sample).check();
      } catch (const Error& error) {
        check::fail(__FILE__, __LINE__, op->name, ": ", error.what());
      }
    }
  }
  CHECK(checked > 500, checked);
}

// A fused row gives the bits of the rows it is made of.
TEST("products with bias and activation give the bits of their separate rows") {
  register_all_ops();
  int checked = 0;
  for (const char* name : {"matmul_bias", "conv2d_bias", "conv3d_bias"}) {
    const OpDef& op = OpRegistry::instance().get(name);
    for (const Sample& sample : op.samples) {
      Graph graph;
      Values in;
      std::vector<Array> arguments;
      std::int64_t examples = 0;
      for (std::size_t i = 0; i < sample.shapes.size(); ++i) {
        arguments.push_back(distinct(DType::kFloat32, Shape(sample.shapes[i]), i, -2, 2));
        ValueType type{DType::kFloat32, Shape(sample.shapes[i]), {}};
        if (!sample.batched.empty() && sample.batched[i]) {
          examples = type.shape[0];
          type.shape[0] = kBatchDim;
          type.batch = {0, 1, 0};
        }
        in.push_back(graph.add_argument(type));
      }
      graph.add_symbol({});
      graph.symbols[0].traced_count = examples;
      Builder b(graph);
      const Values fused = b.apply(op, in, sample.attrs);
      const Attrs attrs = graph.nodes[NodeId(0)].attrs;
      const Values parts = op.decompose({b, attrs, in, fused, {}});
      CHECK(graph.type(parts[0]) == graph.type(fused[0]), name);
      const PerValue<Array> arrays = Interpreter(graph, examples).run(arguments);
      CHECK(same_bits(arrays[parts[0]], arrays[fused[0]]), name);
      ++checked;
    }
  }
  CHECK_EQ(checked, 12);
}

}  // namespace
}  // namespace samegrad::testing
