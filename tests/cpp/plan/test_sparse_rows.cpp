// Gradients of tables, of whose rows the examples name some: which plans touch these alone, what is
// known of zeros, and that a step that fails changes nothing.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "allocation.h"
#include "check.h"
#include "ops/attributes.h"
#include "ops/constant_propagation.h"
#include "ops/registry.h"
#include "plan/cost.h"
#include "programs.h"

using namespace samegrad;

namespace {

constexpr std::int64_t kTableRows = 1000, kWidth = 20, kExamples = 6;

class Table final : public StateCell {
 public:
  explicit Table(const Shape& shape) : components_{Array(DType::kFloat32, shape)} {
    float* numbers = components_[0].data<float>();
    for (std::int64_t i = 0; i < shape.size(); ++i) numbers[i] = i % 5 ? float(i % 7) - 3 : -0.f;
  }
  PerReplica<Array>& components() override { return components_; }

 private:
  PerReplica<Array> components_;
};

// table -= rate * (the gradient of the sum of table[ids])
struct Lookup {
  explicit Lookup(int replicas = 1) : b(graph) {
    register_all_ops();
    graph.replicas = replicas;
    graph.add_symbol({});
    graph.symbols[0].traced_count = kExamples;
    ids = touched_rows();
    rate = variable({});
    table = variable({kTableRows, kWidth});
  }

  Value touched_rows() {
    const Placement placement = graph.replicas > 1 ? Placement::kSharded : Placement::kReplicated;
    return graph.add_argument({DType::kInt64, {kBatchDim}, {0, 1, 0}}, placement);
  }
  Value variable(const Shape& shape) {
    graph.variables.push_back({"v" + std::to_string(graph.variables.size()), 1});
    cells.push_back(std::make_shared<Table>(shape));
    return graph.add_read(graph.variables.next_id() - 1, {DType::kFloat32, shape, {}});
  }
  Value gradient() {
    const Value rows = b("gather", {table, ids}, IndexAttrs{.axis = 0});
    const Value sum = b("segment_sum", {rows, ids, table}, IndexAttrs{.axis = 0});
    return graph.replicas > 1 ? b("all_reduce", {sum}) : sum;
  }
  void update() { write(b("sub", {table, b("mul", {gradient(), rate})})); }
  // The same, scaled by the sum of its squares.
  void scaled_update() {
    const Value sum = gradient();
    const Value squares = b("reduce_sum", {b("square", {sum})}, ReduceAttrs{.axes = {0, 1}});
    write(b("sub", {table, b("mul", {b("mul", {sum, squares}), rate})}));
  }
  void write(Value value) { graph.writes.push_back({SlotId(1), value}); }

  void run(Executable& executable, const std::vector<std::int64_t>& named, float by = 1) {
    cells[0]->components()[0].data<float>()[0] = by;
    std::vector<PerReplica<Array>> arguments(1);
    for (int r = 0; r < graph.replicas; ++r) {
      arguments[0].emplace_back(DType::kInt64, Shape{kExamples});
      std::ranges::copy(named, arguments[0].back().data<std::int64_t>());
    }
    ExecuteParams call;
    call.arguments = arguments;
    call.variables = cells;
    call.counts = Counts(std::size_t(graph.replicas), {kExamples});
    executable.run(call);
  }
  std::vector<std::uint32_t> bits() {
    const Array& array = cells[1]->components()[0];
    std::vector<std::uint32_t> bits(std::size_t(array.size()));
    std::memcpy(bits.data(), array.raw(), array.bytes());
    return bits;
  }

  Graph graph;
  Builder b;
  Value ids, rate, table;
  std::vector<std::shared_ptr<StateCell>> cells;
};

std::int64_t sparse_steps(const Plan& plan) {
  return std::int64_t(steps_of<SparseUpdateStep>(plan).size());
}

// Of those, the ones that touch named rows alone.
std::int64_t steps_of_named_rows(const Plan& plan) {
  return std::ranges::count_if(plan.steps, [&](const PlanStep& step) {
    return step.is<SparseUpdateStep>() &&
           plan.sparse_updates[step.sparse_update()].leaves_rows_alone;
  });
}

// Seconds that naming the rows of so many examples is predicted to take, if memory is slow.
double predicted_naming(const Plan& plan, std::int64_t examples) {
  const Rates rates{.flops = 1e6, .double_flops = 1e6, .cache_bytes = 1e6, .memory_bytes = 1e6};
  const auto step = std::ranges::find_if(
      plan.steps, [](const PlanStep& each) { return each.is<SparseRowsStep>(); });
  CHECK(step != plan.steps.end());
  const Counts counts(std::size_t(plan.graph.replicas), {examples});
  return predict(plan, counts, rates)[std::size_t(step - plan.steps.begin())];
}

bool makes_dense_sums(const Plan& plan) {
  return std::ranges::any_of(plan.graph.nodes, [&](const Node& node) {
    return node.op->name == "segment_sum" && plan.storage[node.outputs[0]] != Storage::kUnused;
  });
}

// What is known of the result of a fused or single operation.
LatticeValue result_of(const char* op, const LatticeValue& a, const LatticeValue& b,
                       DType dtype = DType::kFloat32) {
  register_all_ops();
  Graph graph;
  Builder builder(graph);
  const Value x = graph.add_argument({dtype, {4}, {}}), y = graph.add_argument({dtype, {4}, {}});
  builder(op, {x, y});
  LatticeProgram program;
  const std::vector<int> in{program.add_operand(), program.add_operand()};
  const std::vector<int> out = program.add(graph, graph.nodes[NodeId(0)], in);
  std::vector<LatticeValue> registers(std::size_t(program.registers()));
  registers[0] = a;
  registers[1] = b;
  program.run(registers);
  return registers[std::size_t(out[0])];
}

LatticeValue number(double value, DType dtype = DType::kFloat32) {
  return LatticeValue::number_of(value, dtype);
}

}  // namespace

TEST("what keeps every number, -0 and what is none too, is known") {
  const LatticeValue w = LatticeValue::same_as(3), nothing;
  CHECK(result_of("sub", w, number(0.0)) == w);
  CHECK(result_of("sub", w, number(-0.0)) == nothing);
  CHECK(result_of("add", w, number(-0.0)) == w);
  CHECK(result_of("add", number(-0.0), w) == w);
  CHECK(result_of("add", w, number(0.0)) == nothing);
  CHECK(result_of("mul", number(1.0), w) == w);
  CHECK(result_of("mul", w, number(0.0)) == nothing);
  CHECK(result_of("div", w, number(1.0)) == w);
  CHECK(result_of("div", number(1.0), w) == nothing);
  CHECK(result_of("sub", number(0.0), w) == nothing);
  CHECK(result_of("maximum", w, w) == nothing);
  CHECK(result_of("add", w, number(0, DType::kInt32), DType::kInt32) == w);
  CHECK(result_of("mul", number(3.0), number(-0.5)) == number(-1.5));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(result_of("mul", number(0.0), number(infinity)).kind == LatticeValue::kNumber);
  CHECK(result_of("sub", w, number(std::nan(""))) == nothing);
  // What is not known yet may be what is wanted.
  const LatticeValue some = LatticeValue::some_number();
  CHECK(result_of("sub", w, some) == w);
  CHECK(result_of("mul", w, some) == nothing);
  CHECK(result_of("mul", number(0.0), some) == some);
}

TEST("the gradient of a table and its update are one step, which stores in place") {
  for (const int replicas : {1, 4}) {
    Lookup lookup(replicas);
    lookup.update();
    const Plan plan = compile(lookup.graph);
    CHECK_EQ(steps_of_named_rows(plan), 1);
    CHECK(plan.stores[0] == Aliasing::kInPlace);
    // Nothing that can fail comes after it.
    CHECK(plan.steps.back().is<SparseUpdateStep>());
    PlanOptions options;
    options.sparse_rows = false;
    CHECK_EQ(sparse_steps(compile(lookup.graph, options)), 0);
  }
}

TEST("an update that moves rows without gradient touches all, by a gradient of rows") {
  for (const int replicas : {1, 4}) {
    Lookup decays(replicas);
    const Value step = decays.b("mul", {decays.gradient(), decays.rate});
    const Value kept = decays.b("mul", {decays.table, decays.rate});
    decays.write(decays.b("sub", {kept, step}));
    Lookup adds(replicas);  // +0 makes a 0 of a -0
    adds.write(adds.b("add", {adds.table, adds.gradient()}));
    for (const Lookup* lookup : {&decays, &adds}) {
      const Plan plan = compile(lookup->graph);
      CHECK_EQ(sparse_steps(plan), 1);
      CHECK_EQ(steps_of_named_rows(plan), 0);
      CHECK(!makes_dense_sums(plan));
      CHECK(plan.stores[0] == Aliasing::kInPlace);
    }
  }
}

TEST("a reduction of all elements goes through rows, one of some needs the whole") {
  for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{0, 1}, {1}}) {
    Lookup lookup(2);
    const Value gradient = lookup.gradient();
    const Value square = lookup.b("square", {gradient});
    const Value sum = lookup.b("reduce_sum", {square}, ReduceAttrs{.axes = axes, .keepdims = true});
    lookup.write(lookup.b("sub", {lookup.table, lookup.b("mul", {gradient, sum})}));
    const Plan plan = compile(lookup.graph);
    CHECK_EQ(steps_of<SparseReduceStep>(plan).size(), axes.size() == 2 ? 1u : 0u);
    CHECK_EQ(steps_of_named_rows(plan), axes.size() == 2);
    CHECK_EQ(makes_dense_sums(plan), axes.size() == 1);
  }
}

TEST("a gradient that something else reads is stored as a whole") {
  Lookup lookup;
  lookup.update();
  lookup.graph.outputs.push_back(lookup.graph.nodes[NodeId(1)].outputs[0]);
  CHECK_EQ(sparse_steps(compile(lookup.graph)), 0);
}

TEST("a value that goes to another variable than the one that it keeps is made as a whole") {
  Lookup lookup;
  lookup.variable({kTableRows, kWidth});
  const Value step = lookup.b("mul", {lookup.gradient(), lookup.rate});
  lookup.graph.writes.push_back({SlotId(2), lookup.b("sub", {lookup.table, step})});
  CHECK_EQ(steps_of_named_rows(compile(lookup.graph)), 0);
}

TEST("rows have the bits of a dense step, whatever the rate") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::int64_t> named{7, 999, 7, 0, 500, 7};
  for (const int replicas : {1, 2, 3}) {
    for (const float rate : {0.25f, 0.f, -0.f, -0.25f, infinity, std::nanf("")}) {
      for (const auto update : {&Lookup::update, &Lookup::scaled_update}) {
        Lookup sparse(replicas), dense(replicas);
        (sparse.*update)();
        (dense.*update)();
        PlanOptions options;
        options.sparse_rows = false;
        CHECK_EQ(steps_of_named_rows(compile(sparse.graph)), 1);
        Executable rows(compile(sparse.graph)), whole(compile(dense.graph, options));
        for (int step = 0; step < 2; ++step) {
          sparse.run(rows, named, rate);
          dense.run(whole, named, rate);
        }
        CHECK(sparse.bits() == dense.bits(), replicas, rate);
      }
    }
  }
}

TEST("somebody who holds the old table keeps it, and the new one is whole") {
  const std::vector<std::int64_t> named{7, 999, 7, 0, 500, 7};
  Lookup held, alone;
  held.update();
  alone.update();
  Executable first(compile(held.graph)), second(compile(alone.graph));
  const std::vector<std::uint32_t> before = held.bits();
  const Array old = held.cells[1]->components()[0];
  held.run(first, named);
  alone.run(second, named);
  CHECK(std::memcmp(before.data(), old.raw(), old.bytes()) == 0);
  CHECK(held.bits() == alone.bits());
  CHECK(held.bits() != before);
}

TEST("a row that is not there leaves the table as it was") {
  for (const std::int64_t wrong : {std::int64_t(-1), kTableRows}) {
    Lookup lookup(2);
    // The gradient's own indices are wrong; the gather before it has others.
    const Value others = lookup.touched_rows();
    const Value rows = lookup.b("gather", {lookup.table, others}, IndexAttrs{.axis = 0});
    const Value sum =
        lookup.b("segment_sum", {rows, lookup.ids, lookup.table}, IndexAttrs{.axis = 0});
    lookup.write(lookup.b("sub", {lookup.table, lookup.b("all_reduce", {sum})}));
    const Plan plan = compile(lookup.graph);
    CHECK_EQ(sparse_steps(plan), 1);
    Executable executable(plan);
    Array good(DType::kInt64, {kExamples}), bad(DType::kInt64, {kExamples});
    std::fill_n(good.data<std::int64_t>(), kExamples, 1);
    std::fill_n(bad.data<std::int64_t>(), kExamples, 1);
    bad.data<std::int64_t>()[kExamples - 1] = wrong;
    const std::vector<PerReplica<Array>> arguments{{good, bad}, {good, good}};
    ExecuteParams call;
    call.arguments = arguments;
    call.variables = lookup.cells;
    call.counts = {{kExamples}, {kExamples}};
    const std::vector<std::uint32_t> before = lookup.bits();
    CHECK_THROWS(executable.run(call), Error);
    CHECK(lookup.bits() == before);
  }
}

TEST("a step that finds no memory leaves the table as it was") {
  for (const float rate : {0.25f, -0.25f}) {
    int failures = 0;
    for (int k = 0; k < 2000; ++k) {
      Lookup lookup(2);
      lookup.scaled_update();
      const Plan plan = compile(lookup.graph);
      CHECK_EQ(sparse_steps(plan), 1);
      Executable executable(plan);
      const std::vector<std::uint32_t> before = lookup.bits();
      const std::vector<std::int64_t> named{7, 999, 7, 0, 500, 7};
      const bool failed = fails_at_allocation(k, [&] { lookup.run(executable, named, rate); });
      failures += failed;
      CHECK_EQ(lookup.bits() == before, failed);
      if (!failed) break;
    }
    CHECK(failures > 5, failures);
  }
}

TEST("naming rows is predicted to take as long as there are names, unless the sums are stored") {
  Lookup one, two(2), scaled;
  one.update(), two.update(), scaled.scaled_update();
  const double of_one = predicted_naming(compile(one.graph), 1000);
  CHECK(of_one > 5e-6 && of_one < 50e-6);
  CHECK(predicted_naming(compile(one.graph), 10'000) > 9 * of_one);
  CHECK(predicted_naming(compile(two.graph), 1000) > 1.9 * of_one);
  CHECK(predicted_naming(compile(scaled.graph), 1000) > 1000 * kWidth * 4 / 1e6);
}
