// Weights that do not fit into the caches: which products leave their loop, which updates go block
// by block, and that these change nothing where memory runs out.
#include <algorithm>
#include <new>
#include <numeric>

#include "allocation.h"
#include "base/thresholds.h"
#include "check.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "passes/loop_costs.h"
#include "plan/cost.h"
#include "plan/explain.h"
#include "programs.h"

using namespace samegrad;

namespace {

class Weight final : public StateCell {
 public:
  explicit Weight(const Shape& shape) : components_{Array(DType::kFloat32, shape)} {
    float* numbers = components_[0].data<float>();
    for (std::int64_t i = 0; i < shape.size(); ++i) numbers[i] = float(i % 7) - 3;
  }
  PerReplica<Array>& components() override { return components_; }

 private:
  PerReplica<Array> components_;
};

// Layers y = x · w over examples of `rows` rows each.
struct Layers {
  explicit Layers(std::int64_t width, std::int64_t rows = 1) : b(graph) {
    register_all_ops();
    graph.add_symbol({});
    graph.symbols[0].traced_count = kExamples;
    Shape shape = rows == 1 ? Shape{kBatchDim, width} : Shape{kBatchDim, rows, width};
    x = graph.add_argument({DType::kFloat32, shape, {0, 1, 0}});
  }

  Value variable(const Shape& shape) {
    graph.variables.push_back({"w" + std::to_string(graph.variables.size()), 1});
    cells.push_back(std::make_shared<Weight>(shape));
    return graph.add_read(graph.variables.next_id() - 1, {DType::kFloat32, shape, {}});
  }
  Value layer(Value input, Value weight) { return b("matmul", {input, weight}); }
  // w -= xᵀ · dy
  void update(SlotId variable, Value weight, Value input, Value dy) {
    const Value gradient = b("matmul", {input, dy}, MatmulAttrs{.transpose_a = true});
    graph.writes.push_back({variable, b("sub", {weight, gradient})});
  }

  std::vector<bool> cuts() const {
    const PerNode<bool> cut = products_to_group(graph, PerNode<bool>(graph.nodes.size(), true));
    return {cut.begin(), cut.end()};
  }
  std::vector<PerReplica<Array>> run(Executable& executable, const Array& rows) {
    const std::vector<PerReplica<Array>> arguments{{rows}};
    ExecuteParams call;
    call.arguments = arguments;
    call.variables = cells;
    call.counts = {{kExamples}};
    return executable.run(call);
  }
  std::vector<float> numbers(std::size_t variable) {
    const Array& array = cells[variable]->components()[0];
    return {array.data<float>(), array.data<float>() + array.size()};
  }

  static constexpr std::int64_t kExamples = 6;
  Graph graph;
  Builder b;
  Value x;
  std::vector<std::shared_ptr<StateCell>> cells;
};

template <class Kind>
std::size_t count(const Plan& plan) {
  return steps_of<Kind>(plan).size();
}

}  // namespace

TEST("products whose weights stay in the cache stay in their loop") {
  Layers net(256);
  net.graph.outputs.push_back(net.layer(net.x, net.variable({256, 256})));
  CHECK(net.cuts() == std::vector<bool>{false});
}

TEST("of weights that do not fit together the largest leave, until the others do") {
  Layers net(256);
  const Value y = net.layer(net.x, net.variable({256, 900}));
  const Value z = net.layer(y, net.variable({900, 600}));
  net.graph.outputs.push_back(net.layer(z, net.variable({600, 10})));
  CHECK(net.cuts() == (std::vector<bool>{false, true, false}));
  const Plan plan = compile(net.graph);
  CHECK_EQ(count<GroupedGemmStep>(plan), 1u);
  const std::string why = "out of its loop: 2.1 MiB of 3.0 MiB of weights, where L2 keeps ";
  const std::string text = to_string(explain(plan.graph, plan, {}));
  CHECK(text.find(why) != std::string::npos, text);
  PlanOptions options;
  options.passes.leave_loops.large_products = false;
  CHECK_EQ(count<GroupedGemmStep>(compile(net.graph, options)), 0u);
}

TEST("a product stays where its examples bring more bytes than its weights have") {
  Layers few(1024), many(1024, 700);
  few.graph.outputs.push_back(few.layer(few.x, few.variable({1024, 1024})));
  many.graph.outputs.push_back(many.layer(many.x, many.variable({1024, 1024})));
  CHECK(few.cuts() == std::vector<bool>{true});
  CHECK(many.cuts() == std::vector<bool>{false});
}

TEST("a product with rows that its matrices hold as columns stays") {
  Layers net(1024, 1024);
  const Value w = net.variable({1024, 1024});
  net.graph.outputs.push_back(net.b("matmul", {net.x, w}, MatmulAttrs{.transpose_a = true}));
  CHECK(net.cuts() == std::vector<bool>{false});
}

TEST("a large gradient and the update by it are one step, which stores in place") {
  Layers net(300);
  const Value w = net.variable({300, 200});
  net.update(SlotId(0), w, net.x, net.layer(net.x, w));
  const Plan plan = compile(net.graph);
  CHECK_EQ(count<BlockUpdateStep>(plan), 1u);
  CHECK(plan.stores[0] == Aliasing::kInPlace);
  PlanOptions options;
  options.fuse_updates = false;
  CHECK_EQ(count<BlockUpdateStep>(compile(net.graph, options)), 0u);
}

TEST("a gradient that is an output too is stored as a whole") {
  Layers net(300);
  const Value w = net.variable({300, 200});
  net.update(SlotId(0), w, net.x, net.layer(net.x, w));
  net.graph.outputs.push_back(net.graph.nodes[NodeId(1)].outputs[0]);
  CHECK_EQ(count<BlockUpdateStep>(compile(net.graph)), 0u);
}

namespace {

int opened = 0;

// matmul that counts for how many shares of the examples its operands are opened.
const OpDef& counting_matmul() {
  static const OpDef op = [] {
    OpDef row = OpRegistry::instance().get("matmul");
    row.tree.open = [](const KernelArgs& args) {
      ++opened;
      return OpRegistry::instance().get("matmul").tree.open(args);
    };
    return row;
  }();
  return op;
}

// w - the gradient of examples that are one after the other, distributed like this.
std::vector<float> updated(const std::vector<std::int64_t>& shares) {
  Layers net(304);
  net.graph.replicas = int(shares.size());
  Graph& graph = net.graph;
  if (shares.size() > 1) graph.values[net.x].placement = Placement::kSharded;
  const Value w = net.variable({304, 208});
  const Value y = net.layer(net.x, w);
  Value gradient =
      net.b.apply(counting_matmul(), {{net.x, y}}, MatmulAttrs{.transpose_a = true})[0];
  if (shares.size() > 1) gradient = net.b("all_reduce", {gradient});
  graph.writes.push_back({SlotId(0), net.b("sub", {w, gradient})});
  Executable executable(compile(graph));
  CHECK_EQ(count<BlockUpdateStep>(executable.plan()), 1u);
  const std::int64_t examples = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  const Array rows(DType::kFloat32, {examples, 304});
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    rows.data<float>()[i] = float(i * 7919 % 1013) / 1024 - 0.5f;
  }
  std::vector<PerReplica<Array>> arguments(1);
  ExecuteParams call;
  std::int64_t first = 0;
  for (const std::int64_t n : shares) {
    auto* data = reinterpret_cast<std::byte*>(rows.data<float>() + first * 304);
    const auto bytes = std::size_t(n) * 304 * sizeof(float);
    arguments[0].emplace_back(DType::kFloat32, Shape{n, 304},
                              std::make_shared<Buffer>(data, bytes, [] {}));
    call.counts.push_back({n});
    first += n;
  }
  call.arguments = arguments;
  call.variables = net.cells;
  opened = 0;
  executable.run(call);
  return net.numbers(0);
}

}  // namespace

TEST("the examples of all replicas are one list to the tree, bitwise as one replica") {
  const std::vector<float> one = updated({24});
  CHECK_EQ(opened, 1);
  using Shares = std::vector<std::int64_t>;
  for (const Shares& shares : {Shares{12, 12}, Shares{6, 6, 6, 6}, Shares{3, 3, 3, 3, 3, 3, 3, 3},
                               Shares{8, 8, 8}, Shares{12, 7, 5, 0}, Shares{0, 1, 22, 1}}) {
    CHECK(updated(shares) == one, shares.size(), shares[0]);
    CHECK_EQ(opened, 1);
  }
}

TEST("updates block by block that find no memory leave all weights as they were") {
  int failures = 0;
  for (int k = 0; k < 2000; ++k) {
    Layers net(300);
    const Value v = net.variable({300, 200}), w = net.variable({200, 300});
    const Value y = net.layer(net.x, v);
    net.update(SlotId(1), w, y, net.layer(y, w));
    net.update(SlotId(0), v, net.x, y);
    Executable executable(compile(net.graph));
    Array rows(DType::kFloat32, {Layers::kExamples, 300});
    std::fill_n(rows.data<float>(), rows.size(), 1.f);
    const std::vector<float> first = net.numbers(0), second = net.numbers(1);
    const bool failed = fails_at_allocation(k, [&] { net.run(executable, rows); });
    failures += failed;
    CHECK_EQ(net.numbers(0) == first, failed);
    CHECK_EQ(net.numbers(1) == second, failed);
    if (!failed) break;
  }
  CHECK(failures > 5, failures);
}

TEST("where memory runs out, a weight with given gradients is as before, wherever that is") {
  int failures = 0;
  for (int k = 0; k < 2000; ++k) {
    Layers net(300);
    net.graph.replicas = 2;
    const Value w = net.variable({300, 200});
    const Value given =
        net.graph.add_argument({DType::kFloat32, {300, 200}, {}}, Placement::kVarying);
    net.graph.writes.push_back({SlotId(0), net.b("sub", {w, net.b("all_reduce", {given})})});
    const Plan plan = compile(net.graph);
    const auto updates = steps_of<BlockUpdateStep>(plan);
    CHECK_EQ(updates.size(), std::size_t(1));
    CHECK_EQ(updates[0]->sums[0].tree, kNoNode);
    CHECK(plan.stores[0] == Aliasing::kInPlace);
    Executable executable(plan);
    const Array rows(DType::kFloat32, {Layers::kExamples, 300});
    const Array ones(DType::kFloat32, {300, 200});
    std::fill_n(ones.data<float>(), ones.size(), 1.f);
    const std::vector<PerReplica<Array>> arguments{{rows, rows}, {ones, ones}};
    ExecuteParams call;
    call.arguments = arguments;
    call.variables = net.cells;
    call.counts = {{Layers::kExamples}, {Layers::kExamples}};
    const std::vector<float> before = net.numbers(0);
    const bool failed = fails_at_allocation(k, [&] { executable.run(call); });
    failures += failed;
    CHECK_EQ(net.numbers(0) == before, failed);
    if (failed) continue;
    CHECK_EQ(net.numbers(0)[7], before[7] - 2.f);
    break;
  }
  CHECK(failures > 5, failures);
}

namespace {

// Small layers of images whose filters are large: w -= the gradient.
struct Filters : Layers {
  explicit Filters(std::int64_t side) : Layers(1) {
    images = graph.add_argument({DType::kFloat32, Shape{kBatchDim, side, side, 32}, {0, 1, 0}});
    filter = variable({3, 3, 32, 64});
    const Value y = b("conv2d", {images, filter}, WindowAttrs{.padding = {1, 1, 1, 1}});
    const Value gradient =
        b("conv2d_filter_grad", {images, y, filter}, WindowAttrs{.padding = {1, 1, 1, 1}});
    graph.writes.push_back({SlotId(0), b("sub", {filter, gradient})});
  }
  std::vector<PerReplica<Array>> run(Executable& executable, const Array& pixels) {
    const std::vector<PerReplica<Array>> arguments{{Array(DType::kFloat32, {kExamples, 1})},
                                                   {pixels}};
    ExecuteParams call;
    call.arguments = arguments;
    call.variables = cells;
    call.counts = {{kExamples}};
    return executable.run(call);
  }
  Value images, filter;
};

Array ones(const Shape& shape) {
  Array array(DType::kFloat32, shape);
  std::fill_n(array.data<float>(), array.size(), 1.f);
  return array;
}

}  // namespace

TEST("the gradient of a large filter and the update by it are one step, which stores in place") {
  const Plan plan = compile(Filters(2).graph);
  CHECK_EQ(count<BlockUpdateStep>(plan), 1u);
  CHECK(plan.stores[0] == Aliasing::kInPlace);
}

TEST("a filter whose images bring more bytes than it has is reduced in their loop") {
  CHECK_EQ(count<BlockUpdateStep>(compile(Filters(16).graph)), 0u);
}

TEST("operands whose examples bring many bytes are not kept for the update") {
  const Plan plan = compile(Filters(4).graph);
  CHECK_EQ(count<BlockUpdateStep>(plan), 0u);
  CHECK(plan.stores[0] == Aliasing::kInPlace);
}

TEST("updates of filters that find no memory leave all weights as they were") {
  int failures = 0;
  for (int k = 0; k < 2000; ++k) {
    Filters net(2);
    Executable executable(compile(net.graph));
    const Array pixels = ones({Layers::kExamples, 2, 2, 32});
    const std::vector<float> before = net.numbers(0);
    const bool failed = fails_at_allocation(k, [&] { net.run(executable, pixels); });
    failures += failed;
    CHECK_EQ(net.numbers(0) == before, failed);
    if (!failed) break;
  }
  CHECK(failures > 5, failures);
}

namespace {

// v = v + v for many small variables.
struct Doubled : Layers {
  Doubled() : Layers(1) {
    for (std::int32_t i = 0; i < 40; ++i) {
      const Value v = variable({5000});
      graph.writes.push_back({SlotId(i), b("add", {v, v})});
    }
  }
};

}  // namespace

TEST("the updates of many small variables are one step, which stores in place") {
  const Plan plan = compile(Doubled().graph);
  CHECK_EQ(plan.steps.size(), std::size_t(1));
  CHECK_EQ(count<SideBySideStep>(plan), 1u);
  const SideBySideStep& step = *steps_of<SideBySideStep>(plan)[0];
  CHECK_EQ(step.nodes.size(), std::size_t(40));
  CHECK_EQ(step.pieces.back(), 40);
  CHECK(step.pieces.size() > 4);
  CHECK_EQ(std::ranges::count(plan.stores, Aliasing::kInPlace), 40);
  PlanOptions options;
  options.join_small_nodes = false;
  CHECK_EQ(compile(Doubled().graph, options).steps.size(), std::size_t(40));
}

TEST("a small variable is written after all that read its old value") {
  Doubled net;
  // Each also goes to its neighbour, which has another one by then.
  for (std::int32_t i = 0; i < 40; ++i) {
    net.graph.writes[std::size_t(i)].value = net.graph.nodes[NodeId((i + 1) % 40)].outputs[0];
  }
  std::vector<std::vector<float>> before;
  for (std::size_t i = 0; i < 40; ++i) {
    net.cells[i]->components()[0].data<float>()[0] = float(i);
    before.push_back(net.numbers(i));
  }
  Executable executable(compile(net.graph));
  net.run(executable, ones({Layers::kExamples, 1}));
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK_EQ(net.numbers(i)[0], 2 * before[(i + 1) % 40][0]);
  }
}

TEST("many small updates that find no memory leave all variables as they were") {
  int failures = 0;
  for (int k = 0; k < 2000; ++k) {
    Doubled net;
    Executable executable(compile(net.graph));
    const Array rows = ones({Layers::kExamples, 1});
    const std::vector<float> before = net.numbers(0);
    const bool failed = fails_at_allocation(k, [&] { net.run(executable, rows); });
    failures += failed;
    for (std::size_t i = 0; i < 40; ++i) CHECK_EQ(net.numbers(i) == before, failed);
    if (!failed) break;
  }
  CHECK(failures > 5, failures);
}
