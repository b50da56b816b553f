// Operands that are the same in all rounds of a loop are prepared once.
#include <algorithm>
#include <atomic>

#include "check.h"
#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "runtime/executor.h"

namespace samegrad::testing {
namespace {

constexpr std::int64_t kColumns = 8, kRounds = 5;
std::atomic<int> preparations;

// x + w, of which w is copied first.
const OpDef& shifted() {
  if (const OpDef* known = OpRegistry::instance().find("test_shifted")) return *known;
  OpDef op;
  op.name = "test_shifted";
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "w"};
  op.infer = [](const InferArgs& args) {
    return Inferred{{args.in[0]},
                    args.in[0].batched() ? Locality::kPerExample : Locality::kFullBatch};
  };
  op.prepacking.operand = 1;
  op.prepacking.bytes = [](std::span<const View> in, const Attrs&) {
    return std::size_t(in[1].size()) * sizeof(double);
  };
  op.prepacking.columns = [](std::span<const View> in, const Attrs&) { return in[1].size(); };
  op.prepacking.run = [](std::span<const View> in, const Attrs&, std::int64_t, std::int64_t,
                         void* prepacked) {
    ++preparations;
    std::copy_n(in[1].as<double>(), in[1].size(), static_cast<double*>(prepacked));
  };
  op.kernel = [](const KernelArgs& args) {
    CHECK(args.prepacked != nullptr || args.examples == 0);
    const auto* w =
        args.prepacked ? static_cast<const double*>(args.prepacked) : args.in[1].as<double>();
    for (std::int64_t i = 0; i < args.in[0].size(); ++i) {
      args.out[0].as<double>()[i] = args.in[0].as<double>()[i] + w[i % kColumns];
    }
  };
  OpRegistry::instance().add(op);
  return OpRegistry::instance().get("test_shifted");
}

const ValueType kBatch{DType::kFloat64, Shape({kBatchDim, kColumns}), {0, 1, 0}};
const ValueType kPlain{DType::kFloat64, Shape({4, kColumns}), {}};
const ValueType kWeights{DType::kFloat64, Shape({kColumns}), {}};

struct Case {
  ValueType x = kBatch;
  int replicas = 1;
  bool changes = false;  // the rounds change the weights
};

Graph part(const Case& of) {
  Graph graph;
  graph.replicas = of.replicas;
  if (of.x.batched()) graph.symbols.push_back({});
  graph.add_argument(of.x, of.replicas > 1 ? Placement::kSharded : Placement::kReplicated);
  graph.add_argument(kWeights);
  return graph;
}

Plan plan_of(const Case& of) {
  register_all_ops();
  const Value x = Value(0), w = Value(1);
  auto test = std::make_shared<Graph>(part(of));
  Array yes(DType::kBool, {});
  *yes.data<bool>() = true;
  test->outputs = {test->add_constant(yes)};
  auto body = std::make_shared<Graph>(part(of));
  Builder inside(*body);
  body->outputs = inside.apply(shifted(), {{x, w}});
  if (of.changes) body->outputs.push_back(inside("neg", {w}));
  Graph graph = part(of);
  WhileAttrs attrs;
  attrs.variables = of.changes ? 2 : 1;
  attrs.maximum = kRounds;
  Builder builder(graph);
  graph.outputs = {
      builder.apply(OpRegistry::instance().get("while_loop"), {{x, w}}, attrs, {test, body})[0]};
  return compile(std::move(graph));
}

Array filled(Shape shape, double value) {
  Array array(DType::kFloat64, std::move(shape));
  std::fill_n(array.data<double>(), array.size(), value);
  return array;
}

double run(Executable& executable, const Case& of, double weight) {
  std::vector<PerReplica<Array>> arguments(2);
  ExecuteParams call;
  for (int r = 0; r < of.replicas; ++r) {
    const std::int64_t rows = of.x.batched() ? 3 + r : 4;
    arguments[0].push_back(filled({rows, kColumns}, 1.0));
    call.counts.push_back({});
    if (of.x.batched()) call.counts.back().push_back(rows);
  }
  arguments[1] = {filled({kColumns}, weight)};
  call.arguments = arguments;
  const auto results = executable.run(call);
  for (const Array& result : results[0]) {
    CHECK(result.data<double>()[result.size() - 1] == results[0][0].data<double>()[0]);
  }
  return results[0][0].data<double>()[0];
}

TEST("weights are prepared once for all rounds of a run") {
  for (const Case& of : {Case{}, Case{kPlain}, Case{kBatch, 3}}) {
    Executable executable(plan_of(of));
    preparations = 0;
    CHECK(run(executable, of, 2.0) == 1.0 + 2.0 * kRounds);
    CHECK(preparations == 1);
    // The next run has other weights.
    CHECK(run(executable, of, 3.0) == 1.0 + 3.0 * kRounds);
    CHECK(preparations == 2);
  }
}

TEST("weights that rounds change are prepared in each") {
  const Case of{kBatch, 1, true};
  Executable executable(plan_of(of));
  preparations = 0;
  CHECK(run(executable, of, 2.0) == 3.0);  // 2 - 2 + 2 - 2 + 2
  CHECK(preparations == kRounds);
}

}  // namespace
}  // namespace samegrad::testing
