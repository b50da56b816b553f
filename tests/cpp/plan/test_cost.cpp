// What operations cost, the tiles that are chosen by it, and how long steps are predicted to take.
#include "plan/cost.h"

#include <numeric>

#include "base/reduction_order.h"
#include "base/thresholds.h"
#include "check.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "plan/explain.h"
#include "programs.h"

using namespace samegrad;

namespace {

// Layers over rows of an argument.
struct Net {
  explicit Net(std::int64_t width) : b(graph) {
    register_all_ops();
    graph.add_symbol({});
    graph.symbols[0].traced_count = 8;
    x = graph.add_argument({DType::kFloat32, {kBatchDim, width}, {0, 1, 0}});
  }
  Value constant(const Shape& shape, DType dtype = DType::kFloat32) {
    return graph.add_argument({dtype, shape, {}});
  }
  const Node& last() const { return graph.nodes.back(); }
  Cost cost(std::int64_t examples) const { return cost_of(graph, last(), {examples}); }

  Graph graph;
  Builder b;
  Value x;
};

// A machine that does a million operations, and moves a million bytes, in a second.
Rates slow() {
  return {.flops = 1e6, .double_flops = 5e5, .cache_bytes = 1e7, .memory_bytes = 1e6, .threads = 1};
}

double predicted(const Plan& plan, std::int64_t examples, const Rates& rates = slow()) {
  const std::vector<double> steps = predict(plan, {{examples}}, rates);
  return std::accumulate(steps.begin(), steps.end(), 0.0);
}

// Of two products with `inner` numbers of an example between them, of which only the first and the
// last are as wide as it.
LoopStep loop_of(std::int64_t width, std::int64_t inner) {
  Net net(width);
  const Value y = net.b("neg", {net.b("matmul", {net.x, net.constant({width, inner})})});
  const Value z = net.b("matmul", {y, net.constant({inner, width})});
  net.graph.outputs.push_back(net.b("reduce_sum", {z}, ReduceAttrs{.axes = {0, 1}}));
  PlanOptions options;
  options.passes = PassOptions::none();
  options.passes.leave_loops.large_products = options.inner_loops = false;
  const Plan plan = compile(net.graph, options);
  const auto loops = steps_of<LoopStep>(plan);
  CHECK_EQ(loops.size(), std::size_t(1));
  CHECK_EQ(loops[0]->weight_bytes, 2 * 4 * width * inner);
  return *loops[0];
}

std::int64_t examples_in(std::int64_t bytes, const LoopStep& loop) {
  const std::int64_t fitting = bytes / (loop.example_bytes + 1);
  return std::max(kLeafExamples, std::min(thresholds().tile_examples, fitting));
}

}  // namespace

TEST("a product costs two operations for each multiplication, and moves each matrix once") {
  Net net(30);
  net.b("matmul", {net.x, net.constant({30, 20})});
  const Cost cost = net.cost(7);
  CHECK_EQ(cost.flops, 2.0 * 7 * 30 * 20);
  CHECK_EQ(cost.bytes(), 4.0 * (7 * 30 + 30 * 20 + 7 * 20));
}

TEST("a contraction over the examples costs as much as the product that it is the gradient of") {
  Net net(30);
  const Value y = net.b("matmul", {net.x, net.constant({30, 20})});
  const double forward = net.cost(7).flops;
  net.b("matmul", {net.x, y}, MatmulAttrs{.transpose_a = true});
  CHECK_EQ(net.cost(7).flops, forward);
}

TEST("convolutions and their gradients cost a multiplication for each tap of each element") {
  Net net(1);
  const Value images = net.graph.add_argument({DType::kFloat32, {kBatchDim, 8, 8, 3}, {0, 1, 0}});
  const Value filter = net.constant({3, 3, 3, 16});
  const Value y = net.b("conv2d", {images, filter});
  const Shape& shape = net.graph.type(y).shape;
  const double taps = 2.0 * 5 * double(shape.size(1, 4)) * 27;
  CHECK_EQ(net.cost(5).flops, taps);
  net.b("conv2d_input_grad", {y, filter, images});
  CHECK_EQ(net.cost(5).flops, taps);
  net.b("conv2d_filter_grad", {images, y, filter});
  CHECK_EQ(net.cost(5).flops, taps);
}

TEST("what only shows bytes costs nothing, and a sum as many operations as it has summands") {
  Net net(30);
  const Value turned = net.b("reshape", {net.x}, ReshapeAttrs{.shape = {-1, 5, 6}});
  CHECK_EQ(net.cost(7).flops, 0.0);
  CHECK_EQ(net.cost(7).bytes(), 0.0);
  net.b("reduce_sum", {turned}, ReduceAttrs{.axes = {0, 1, 2}});
  CHECK_EQ(net.cost(7).flops, 7.0 * 30);
}

TEST("a function that is a polynomial costs more than an addition, in a fused loop as well") {
  Net net(30);
  net.b("add", {net.x, net.x});
  const double one = net.cost(7).flops;
  CHECK_EQ(one, 7.0 * 30);
  const Value y = net.b("tanh", {net.x});
  const double tanh = net.cost(7).flops;
  CHECK(tanh > 4 * one);
  net.graph.outputs.push_back(net.b("add", {net.b("mul", {y, y}), y}));
  const Plan plan = compile(net.graph);
  double most = 0;
  for (const Node& node : plan.graph.nodes) {
    if (node.op->name != "fused_elementwise") continue;
    most = cost_of(plan.graph, node, {7}).flops;
  }
  CHECK_EQ(most, tanh + 2 * one);
}

TEST("no examples cost no operation") {
  Net net(30);
  net.b("matmul", {net.x, net.constant({30, 20})});
  CHECK_EQ(net.cost(0).flops, 0.0);
}

TEST("tiles hold as many examples as their share of L2 has room for") {
  for (const std::int64_t width : {1, 16, 1000}) {
    const LoopStep loop = loop_of(width, 16);
    // Two of 16 numbers, one as wide as the examples, and their sum.
    CHECK(loop.example_bytes == 4 * (32 + width) || loop.example_bytes == 4 * (33 + width));
    CHECK(!streams_weights(loop));
    CHECK_EQ(loop.tile_examples, examples_in(thresholds().tile_bytes, loop));
  }
}

TEST("tiles are larger where their weights come from beyond L2") {
  // Weights of 32 MiB (or twice L2), and a thousandth of it between the nodes.
  const std::int64_t side = 2048 * (1 + thresholds().loop_weight_bytes / (16 << 20));
  const LoopStep loop = loop_of(side, side);
  CHECK(streams_weights(loop));
  CHECK_EQ(loop.tile_examples, examples_in(thresholds().far_tile_bytes, loop));
  CHECK(loop.tile_examples > examples_in(thresholds().tile_bytes, loop));
}

TEST("tiles stay in L2 where what they bring is more than the weights") {
  // As many weights as do not stay in L2, one tile of examples bringing as much.
  const std::int64_t width = thresholds().loop_weight_bytes / 8 + 1000;
  const LoopStep loop = loop_of(width, 1);
  CHECK(streams_weights(loop));
  CHECK_EQ(loop.tile_examples, kLeafExamples);
}

TEST("predicted times grow with the work, and doubles take longer") {
  const auto seconds = [](std::int64_t width, std::int64_t examples, DType dtype) {
    Net net(width);
    Value x = net.x;
    if (dtype == DType::kFloat64) {
      x = net.graph.add_argument({dtype, {kBatchDim, width}, {0, 1, 0}});
    }
    net.graph.outputs.push_back(net.b("matmul", {x, net.constant({width, width}, dtype)}));
    return predicted(compile(net.graph), examples);
  };
  const double once = seconds(64, 8, DType::kFloat32);
  CHECK(once > 2.0 * 8 * 64 * 64 / 1e6);
  CHECK(once < 2.5 * 8 * 64 * 64 / 1e6);
  CHECK(seconds(64, 80, DType::kFloat32) > 9 * once);
  CHECK(seconds(128, 8, DType::kFloat32) > 3.5 * once);
  CHECK(seconds(64, 8, DType::kFloat64) > 1.9 * once);
}

TEST("what computes little is predicted to take what its bytes take") {
  Net net(1 << 20);
  net.graph.outputs.push_back(net.b("neg", {net.x}));
  const double bytes = 2.0 * 4 * 8 * (1 << 20);
  Rates fast = slow();
  fast.flops = 1e9;
  fast.cache_bytes = 1e9;
  const double seconds = predicted(compile(net.graph), 8, fast);
  CHECK(seconds >= bytes / 1e6 && seconds < bytes / 1e6 * 1.3, seconds, " ", bytes / 1e6);
}

TEST("a plan that does not stay in the caches waits for memory in each step") {
  const auto seconds = [](std::int64_t width, const Rates& rates) {
    Net net(width);
    net.graph.outputs.push_back(net.b("neg", {net.x}));
    return predicted(compile(net.graph), 8, rates);
  };
  const Rates far{.flops = 1e9, .double_flops = 1e9, .cache_bytes = 1e9, .memory_bytes = 1e9};
  Rates farther = far;
  farther.memory_bytes /= 4;
  farther.line_seconds = 1e-3;
  const std::int64_t small = machine().l2 / 256, large = machine().l2;
  CHECK_EQ(seconds(small, far), seconds(small, farther));
  const double waiting = 2.0 * 4 * 8 * double(large) * (4 - 1) / 1e9;
  CHECK(seconds(large, farther) > seconds(large, far) + waiting + 5e-3);
}

TEST("operands of which only the type is read are predicted to take no time") {
  Net net(1 << 20);
  net.graph.outputs.push_back(net.b("size_of", {net.x}, CountAttrs{.axes = {0, 1}}));
  CHECK(net.cost(8).flops <= 1);
  CHECK(predicted(compile(net.graph), 8) < 1e-4);
}

TEST("a plan tells the machine, its memory, and each step's predicted and measured time") {
  Net net(64);
  const Value y = net.b("matmul", {net.x, net.constant({64, 64})});
  net.graph.outputs.push_back(net.b("reduce_sum", {y}, ReduceAttrs{.axes = {0, 1}}));
  const Plan plan = compile(net.graph);
  RunStatistics replica_context;
  replica_context.threads = 3;
  replica_context.arena_bytes = 2048;
  replica_context.unshared_bytes = 4096;
  replica_context.predicted.assign(plan.steps.size(), 12.34e-6);
  const auto has = [&](const char* text) {
    return to_string(explain(plan.graph, plan, replica_context)).find(text) != std::string::npos;
  };
  CHECK(has("machine: L1 ") && has(", 3 thread(s)\n"));
  CHECK(has("memory between steps: 2 KiB (of 4 KiB without reuse)\n"));
  CHECK(has("    predicted 12.3 us\n"));
  CHECK(has("tiles of "));
  CHECK(!has("measured"));
  replica_context.measured.assign(plan.steps.size(), {2.5e-3, 1.25e-3});
  replica_context.runs = 5;
  CHECK(has("    predicted 12.3 us, measured 2.50 ms (least 1.25 ms)\n"));
  replica_context.measured[0].shared = {2, 24};
  CHECK(has(" (least 1.25 ms), 24 pieces in 2 parallel loop(s)\n"));
  CHECK(has("(mean of 5 runs that changed nothing; least "));
}
