// Whole steps: a small convolutional network is trained over replicas and threads.
#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "check.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "runtime/threads.h"
#include "tracing.h"
#include "train/compiled_function.h"
#include "train/control.h"

using namespace samegrad;

namespace {

constexpr ExampleAxis kRows0{0, 1, 0};

Array random_array(const Shape& shape, unsigned seed, double scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> draw;
  Array array(DType::kFloat32, shape);
  for (std::int64_t i = 0; i < array.size(); ++i) {
    array.data<float>()[i] = float(scale * draw(generator));
  }
  return array;
}

Array labels_of(std::int64_t n) {
  Array array(DType::kInt64, {n});
  for (std::int64_t i = 0; i < n; ++i) array.data<std::int64_t>()[i] = (i * 7) % 5;
  return array;
}

using VariablePtr = std::shared_ptr<Variable>;

VariablePtr make_variable(const char* name, const Shape& shape, unsigned seed) {
  return std::make_shared<Variable>(name, std::vector<Array>{random_array(shape, seed, 0.1)});
}

// convolution, pooling, dense layer, cross-entropy as the replica's share of the mean, SGD.
class Network {
 public:
  explicit Network(int replicas) : replicas_(replicas) {
    register_all_ops();
    auto trace = std::make_shared<FunctionTrace>(host, replicas);
    const Scope scope(with_trace(trace));
    const auto of_each = [replicas](const Array& array) {
      return PerReplica<Array>(std::size_t(replicas), array);
    };
    const Tensor x =
        trace->tensor(trace->argument(of_each(random_array({8, 10, 10, 1}, 1, 1)), kRows0));
    const Tensor y = trace->tensor(trace->argument(of_each(labels_of(8)), kRows0));
    Tape tape(host, false);
    tape.start();
    const Tensor loss = share_of_loss(*trace, x, y);
    tape.stop();
    std::vector<Tape::Origin> sources;
    for (const VariablePtr& v : variables_) sources.push_back({nullptr, v});
    const auto gradients = tape.gradient({&loss}, {}, sources);
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const Tensor sum = op("all_reduce", {*gradients[i]});
      const Tensor rate = make_tensor(Array::number(DType::kFloat32, 0.1));
      const Tensor old = trace->tensor(trace->read(variables_[i]));
      trace->write(variables_[i], trace->lift(op("sub", {old, op("mul", {sum, rate})})));
    }
    const Value total = trace->lift(op("all_reduce", {loss}));
    step_ = std::make_unique<CompiledFunction>(trace->finish({total}), PlanOptions());
  }

  float train(std::int64_t rows, unsigned seed, std::int64_t last_label = 0) {
    const Array x = random_array({rows, 10, 10, 1}, seed, 1), y = labels_of(rows);
    y.data<std::int64_t>()[rows - 1] = last_label;
    std::vector<PerReplica<Array>> arguments(2);
    for (int r = 0; r < replicas_; ++r) {
      const std::int64_t chunk = (rows + replicas_ - 1) / replicas_;
      const std::int64_t begin = std::min(rows, r * chunk), end = std::min(rows, begin + chunk);
      arguments[0].push_back(x.rows(begin, end));
      arguments[1].push_back(y.rows(begin, end));
    }
    return *step_->run(arguments, false)[0][0].data<float>();
  }

  std::string weights() const {
    std::string bytes;
    for (const VariablePtr& v : variables_) {
      const Array& array = v->components()[0];
      bytes.append(reinterpret_cast<const char*>(array.raw()), array.bytes());
    }
    return bytes;
  }

 private:
  Tensor share_of_loss(FunctionTrace& trace, const Tensor& x, const Tensor& y) {
    const auto read = [&](std::size_t i) { return trace.tensor(trace.read(variables_[i])); };
    Tensor h = op("conv2d", {x, read(0)}, WindowAttrs{.strides = {1, 1}});
    h = op("relu", {op("add", {h, read(1)})});
    h = op("max_pool2d", {h}, PoolAttrs{{.strides = {2, 2}}, {2, 2}});
    h = op("reshape", {h}, ReshapeAttrs{.shape = {-2, 4 * 4 * 8}});
    h = op("add", {op("matmul", {h, read(2)}), read(3)});
    const Tensor losses = op("sparse_softmax_cross_entropy", {h, y});
    const Tensor count = op("cast", {op("global_size_of", {losses}, CountAttrs{.axes = {0}})},
                            CastAttrs{DType::kFloat32});
    return op("reduce_sum", {op("div", {losses, count})},
              ReduceAttrs{.axes = {0}, .keepdims = false});
  }

  int replicas_;
  std::vector<VariablePtr> variables_ = {
      make_variable("filter", {3, 3, 1, 8}, 1), make_variable("bias", {8}, 2),
      make_variable("kernel", {4 * 4 * 8, 5}, 3), make_variable("offset", {5}, 4)};
  std::unique_ptr<CompiledFunction> step_;
};

std::string trained(int replicas, int threads, std::int64_t rows) {
  set_thread_count(threads);
  Network network(replicas);
  float first = 0, last = 0;
  for (unsigned i = 0; i < 6; ++i) {
    last = network.train(rows, 17);
    if (i == 0) first = last;
  }
  CHECK(last < first && std::isfinite(last), first, " then ", last);
  set_thread_count(0);
  return network.weights();
}

}  // namespace

TEST("a step gives the same bits on any number of replicas and threads") {
  const std::string expected = trained(1, 1, 64);
  for (const int replicas : {1, 2, 4, 8}) {
    for (const int threads : {1, 2, 4}) {
      CHECK(trained(replicas, threads, 64) == expected, replicas, " replicas, ", threads,
            " threads");
    }
  }
}

TEST("one compiled step takes batches of any size, smaller ones than there are replicas too") {
  Network network(4);
  for (const std::int64_t rows : {16, 7, 3, 1, 64}) CHECK(std::isfinite(network.train(rows, 5)));
}

TEST("a step that fails leaves the variables as they were") {
  Network network(2);
  network.train(16, 1);
  const std::string before = network.weights();
  CHECK_THROWS(network.train(16, 1, 9), Error);
  CHECK(network.weights() == before);
}

TEST("a loop in the graph runs until its condition is false") {
  register_all_ops();
  auto trace = std::make_shared<FunctionTrace>(host, 1);
  const Scope scope(with_trace(trace));
  const Tensor limit = trace->tensor(trace->argument({Array::scalar<std::int64_t>(3)}, {}));
  const auto one = make_tensor(Array::scalar<std::int64_t>(1));
  const std::vector<Tensor> results = traced_while(
      [&](const std::vector<Tensor>& v) {
        return std::vector{op("less", {v[0], limit})};
      },
      [&](const std::vector<Tensor>& v) {
        return std::vector{op("add", {v[0], one})};
      },
      {make_tensor(Array::scalar<std::int64_t>(0))}, -1);
  CompiledFunction step(trace->finish({trace->lift(results[0])}), PlanOptions());
  for (const std::int64_t n : {0, 1, 9}) {
    const auto out = step.run({{Array::scalar<std::int64_t>(n)}}, false);
    CHECK_EQ(*out[0][0].data<std::int64_t>(), n);
  }
}
