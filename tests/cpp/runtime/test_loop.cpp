// A row whose state is not its result, in whole steps: loops, chunks, replicas and single ops.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "check.h"
#include "fake_rows.h"
#include "ir/builder.h"
#include "runtime/executor.h"
#include "runtime/threads.h"

namespace samegrad::testing {
namespace {

constexpr std::int64_t kWidth = 37;

// The variance of each column over the examples.
const OpDef& variance() {
  if (const OpDef* known = OpRegistry::instance().find("test_variance")) return *known;
  OpDef op;
  op.name = "test_variance";
  op.operands = {"x"};
  op.infer = [](const InferArgs& args) {
    ValueType y{args.in[0].dtype, Shape({args.in[0].shape[1]}), {}};
    return Inferred{{y}, Locality::kBatchReduction};
  };
  op.tree = kMoments;
  OpRegistry::instance().add(op);
  return OpRegistry::instance().get("test_variance");
}

std::atomic<std::int64_t> largest_call;

// A copy that remembers how many examples it was given at most at a time.
const OpDef& copy() {
  if (const OpDef* known = OpRegistry::instance().find("test_copy")) return *known;
  OpDef op;
  op.name = "test_copy";
  op.operands = {"x"};
  op.infer = [](const InferArgs& args) { return Inferred{{args.in[0]}, Locality::kPerExample}; };
  op.kernel = [](const KernelArgs& args) {
    std::int64_t seen = largest_call;
    while (seen < args.examples && !largest_call.compare_exchange_weak(seen, args.examples)) {
    }
    std::memcpy(args.out[0].data, args.in[0].data, std::size_t(args.in[0].size()) * sizeof(double));
  };
  OpRegistry::instance().add(op);
  return OpRegistry::instance().get("test_copy");
}

Array numbers(std::int64_t examples) {
  Array x(DType::kFloat64, Shape({examples, kWidth}));
  std::uint64_t state = 9;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    x.data<double>()[i] = double(state >> 11) * 0x1p-53 + double(i % 7);
  }
  return x;
}

const ValueType kRows{DType::kFloat64, Shape({kBatchDim, kWidth}), {0, 1, 0}};

// The variances of each replica's examples.
std::vector<Array> run(const std::vector<Array>& parts, bool check_finite = false) {
  Graph graph;
  graph.replicas = int(parts.size());
  graph.symbols.push_back({});
  const Value x =
      graph.add_argument(kRows, parts.size() > 1 ? Placement::kSharded : Placement::kReplicated);
  Builder builder(graph);
  graph.outputs = builder.apply(variance(), {{x}});
  Plan plan = compile(std::move(graph));
  const auto loops = steps_of<LoopStep>(plan);
  CHECK(loops.size() == 1 && loops[0]->trees.size() == 1);
  Executable executable(std::move(plan));
  const std::vector<PerReplica<Array>> arguments{parts};
  ExecuteParams call;
  call.arguments = arguments;
  call.check_finite = check_finite;
  for (const Array& part : parts) call.counts.push_back({part.shape()[0]});
  return executable.run(call)[0].values();
}

Array at_once(const Array& x) {
  Node node;
  node.op = &variance();
  node.inputs = {Value(0)};
  node.outputs = {Value(1)};
  node.locality = Locality::kBatchReduction;
  ReplicaContext replica_context;
  replica_context.local_examples = replica_context.global_examples = {x.shape()[0]};
  replica_context.first_example = {0};
  return run_op(node, {kRows}, {{DType::kFloat64, Shape({kWidth}), {}}}, {x}, replica_context)[0];
}

bool same(const Array& a, const Array& b) {
  return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

TEST("a result made of a state is the same in chunks, on replicas and of a single op") {
  for (const std::int64_t n : {1, 2, 5, 64, 4097}) {
    const Array x = numbers(n);
    const Array expected = at_once(x);
    for (const int threads : {1, 3}) {
      set_thread_count(threads);
      CHECK(same(run({x})[0], expected), n, " ", threads);
      const std::int64_t half = (n + 1) / 2;
      const std::vector<Array> parts{x.rows(0, half), x.rows(half, n)};
      const std::vector<Array> got = run(parts);
      CHECK(same(got[0], at_once(parts[0])) && same(got[1], at_once(parts[1])), n, " ", threads);
    }
  }
  set_thread_count(0);
  const Array x = numbers(1000);
  double mean = 0, squares = 0;
  for (std::int64_t i = 0; i < 1000; ++i) mean += x.data<double>()[i * kWidth] / 1000;
  for (std::int64_t i = 0; i < 1000; ++i) {
    squares += std::pow(x.data<double>()[i * kWidth] - mean, 2) / 1000;
  }
  CHECK(std::abs(run({x})[0].data<double>()[0] - squares) < 1e-12);
}

TEST("few examples with much work are shared among the threads, however many a tile may hold") {
  const ValueType wide{DType::kFloat64, Shape({kBatchDim, 10'000}), {0, 1, 0}};
  Graph graph;
  graph.symbols.push_back({});
  Builder builder(graph);
  graph.outputs = builder.apply(copy(), {{graph.add_argument(wide)}});
  Plan plan = compile(std::move(graph));
  const auto loops = steps_of<LoopStep>(plan);
  CHECK_EQ(loops.size(), std::size_t(1));
  CHECK(loops[0]->tile_examples >= 64);  // nothing passes between the nodes
  Executable executable(std::move(plan));
  Array x(DType::kFloat64, Shape({64, 10'000}));
  std::fill_n(x.data<double>(), x.size(), 2.0);
  const std::vector<PerReplica<Array>> arguments{{x}};
  ExecuteParams call;
  call.arguments = arguments;
  call.counts = {{64}};
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    largest_call = 0;
    CHECK(same(executable.run(call)[0][0], x));
    CHECK(largest_call <= (threads == 1 ? 64 : (64 + threads - 1) / threads), largest_call.load());
  }
  set_thread_count(0);
}

TEST("a result that is not finite is found after its tree") {
  const Array x = numbers(9);
  run({x}, true);
  x.data<double>()[kWidth * 5] = INFINITY;
  CHECK_THROWS(run({x}, true), std::exception);
}

}  // namespace
}  // namespace samegrad::testing
