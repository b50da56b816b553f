// Traces for different counts become one program.
#include "passes/merge_specializations.h"

#include <algorithm>

#include "base/error.h"
#include "check.h"
#include "error_message.h"
#include "ir/builder.h"
#include "nodes.h"
#include "ops/control.h"
#include "ops/random_attributes.h"
#include "ops/registry.h"
#include "passes/passes.h"
#include "passes/value_numbers.h"

namespace samegrad::testing {
namespace {

const std::vector<std::int64_t> kCounts{4, 3, 4};

// The trace of a function for some of three replicas, which have 4, 3 and 4 examples.
class FakeTrace {
 public:
  explicit FakeTrace(std::vector<int> replicas) : b(graph) {
    register_all_ops();
    graph.replicas = 3;
    Symbol examples;
    examples.traced_count = kCounts[0];
    examples.traced_counts = kCounts;
    examples.traced_total = 11;
    examples.fixed = true;
    graph.add_symbol(examples);
    graph.symbols.replicas = std::move(replicas);
    x = graph.add_argument({DType::kFloat32, {kBatchDim, 2}, {0, 1, 0}}, Placement::kSharded);
  }

  std::int64_t count() const { return traced_counts(graph.symbols)[0][0]; }
  Value row(std::int64_t i) {
    const Value part =
        b("slice", {x}, SliceAttrs{.begin = {i, 0}, .end = {i + 1, 2}, .strides = {1, 1}});
    return b("squeeze", {part}, SqueezeAttrs{.axes = {0}});
  }
  // As a loop of Python's does it.
  Value sum_of_rows() {
    Value sum = row(0);
    for (std::int64_t i = 1; i < count(); ++i) sum = b("add", {sum, row(i)});
    return sum;
  }
  Value all(Value value, ReduceOp op = ReduceOp::kSum) {
    return b("all_reduce", {value}, AllReduceAttrs{op});
  }

  Graph graph;
  Builder b;
  Value x = kNoValue;
};

template <class Fill>
std::vector<Specialization> traces(Fill fill) {
  std::vector<Specialization> made;
  for (const std::vector<int>& replicas : {std::vector<int>{0, 2}, std::vector<int>{1}}) {
    FakeTrace trace(replicas);
    trace.graph.outputs = fill(trace);
    made.push_back({std::move(trace.graph), "train.py:7"});
  }
  return made;
}

template <class Fill>
Graph joined(Fill fill) {
  Graph graph = merge_specializations(traces(fill));
  verify(graph);
  verify(run_passes(graph, {}));
  return graph;
}

const Node& node(const Graph& graph, std::string_view op) {
  return *std::ranges::find_if(graph.nodes, [&](const Node& n) { return n.op->name == op; });
}

TEST("what all traces compute alike is in the program once, without a branch") {
  const Graph graph = joined([](FakeTrace& t) -> Values {
    return {t.b("tanh", {t.b("mul", {t.x, t.b.number(DType::kFloat32, 2.5)})})};
  });
  CHECK_EQ(count(graph, "cond"), 0);
  CHECK_EQ(graph.nodes.size(), 2u);
  CHECK(graph.symbols.replicas.empty());
}

TEST("what differs is a branch of the replicas of each trace") {
  const Graph graph = joined([](FakeTrace& t) -> Values { return {t.sum_of_rows()}; });
  CHECK_EQ(count(graph, "cond"), 1);
  CHECK_EQ(count(graph, "squeeze"), 3);  // the rows that all replicas have
  const Node& cond = node(graph, "cond");
  CHECK(true_branch(cond.regions).symbols.replicas == std::vector<int>({0, 2}));
  CHECK(false_branch(cond.regions).symbols.replicas == std::vector<int>({1}));
  CHECK_EQ(count(true_branch(cond.regions), "squeeze"), 1);
  CHECK(graph.placement(graph.outputs[0]) == Placement::kVarying);
  CHECK(node(graph, "trace_of_count").attrs.as<TraceAttrs>().replicas == Ints({0, 2}));
  CHECK_EQ(graph.locations[std::size_t(cond.location)], "train.py:7");
}

TEST("collectives are between the branches, and all that come next share one") {
  const Graph graph = joined([](FakeTrace& t) -> Values {
    const Value sum = t.sum_of_rows();
    const Value first = t.all(sum);
    const Value second = t.all(t.b("tanh", {sum}));
    const Value third = t.all(t.b("mul", {sum, first}));
    return {t.b("add", {first, second}), third};
  });
  CHECK_EQ(count(graph, "all_reduce"), 3);
  CHECK_EQ(count(graph, "cond"), 2);
  CHECK_EQ(count(graph, "add"), 3);  // two of the rows that all have, and that of the results
  CHECK(graph.placement(graph.outputs[0]) == Placement::kReplicated);
}

TEST("sizes that differ are each replica's own") {
  const Graph graph = joined([](FakeTrace& t) -> Values {
    return {t.b("zeros", {}, ZerosAttrs{.shape = {t.count(), 2}})};
  });
  const ValueType& type = graph.type(graph.outputs[0]);
  CHECK(is_symbolic(type.shape[0]) && type.shape[1] == 2);
  const Symbol& own = graph.symbols[std::size_t(type.shape[0] - kSymbols)];
  CHECK(own.fixed && own.traced_counts == kCounts);
}

TEST("draws of other numbers of rows are rows of one stream") {
  const Graph graph = joined([](FakeTrace& t) -> Values {
    return {t.b("random_normal", {t.b("replica_id", {})}, RandomAttrs({.shape = {t.count(), 2}}))};
  });
  const Node& drawn = node(true_branch(node(graph, "cond").regions), "random_normal_like");
  CHECK(is_symbolic(drawn.attrs.as<RandomLikeAttrs>().rows));
}

TEST("draws by a key, too, which they keep") {
  const Graph graph = joined([](FakeTrace& t) -> Values {
    const Value key = t.graph.add_constant(Array(DType::kUInt32, {2}));
    return {t.b("stateless_random_normal", {key, t.b("replica_id", {})},
                StatelessAttrs({.shape = {t.count(), 2}}))};
  });
  const Graph& branch = true_branch(node(graph, "cond").regions);
  const Node& drawn = node(branch, "stateless_random_normal_like");
  CHECK(is_symbolic(drawn.attrs.as<StatelessLikeAttrs>().rows));
  CHECK(branch.type(drawn.inputs[0]).dtype == DType::kUInt32);
}

std::string refused(Values (*fill)(FakeTrace&)) {
  return message_of([&] { (void)joined(fill); });
}

bool says(const std::string& message, std::string_view what) {
  return message.find(what) != std::string::npos;
}

TEST("traces that do not agree are refused, with replicas, counts and the line") {
  const std::string numbers = refused([](FakeTrace& t) -> Values {
    Value sum = t.all(t.row(0));
    for (std::int64_t i = 1; i < t.count(); ++i) sum = t.b("add", {sum, t.all(t.row(i))});
    return {sum};
  });
  CHECK(says(numbers, "replicas 0, 2 (4 examples)"));
  CHECK(says(numbers, "no further one after 3 on replica 1 (3 examples)"));
  CHECK(says(numbers, "train.py:7"));
  CHECK(says(refused([](FakeTrace& t) -> Values {
               return {t.all(t.row(0), t.count() == 3 ? ReduceOp::kSum : ReduceOp::kMean)};
             }),
             "same collective"));
  CHECK(says(refused([](FakeTrace& t) -> Values {
               Values drawn;
               for (std::int64_t i = 0; i < t.count(); ++i) {
                 drawn.push_back(
                     t.b("random_uniform_like", {t.x}, RandomLikeAttrs({.ordinal = i})));
               }
               return {drawn.back()};
             }),
             "same random operation"));
  CHECK(says(refused([](FakeTrace& t) -> Values {
               return {t.all(t.b("zeros", {}, ZerosAttrs{.shape = {t.count()}}))};
             }),
             "different numbers of examples"));
  CHECK(says(refused([](FakeTrace& t) -> Values {
               return {t.count() == 3 ? t.x
                                      : t.b("cast", {t.x}, CastAttrs{.dtype = DType::kFloat64})};
             }),
             "one dtype and as many axes"));
}

TEST("a variable of all replicas is not assigned what differs") {
  std::vector<Specialization> made = traces([](FakeTrace& t) -> Values {
    t.graph.variables.push_back({"w", 1});
    t.graph.writes.push_back({SlotId(0), t.b.number(DType::kFloat32, double(t.count()))});
    return {t.x};
  });
  CHECK(says(message_of([&] { (void)merge_specializations(made); }), "[w] is one variable"));
  for (Specialization& trace : made) trace.graph.variables[SlotId(0)].components = 3;
  const Graph graph = merge_specializations(made);
  CHECK(graph.placement(graph.writes[0].value) == Placement::kVarying);
}

TEST("values of several graphs that compute alike have one number") {
  FakeTrace a({0, 2}), b({1});
  const Value sum = a.sum_of_rows();
  const Value other = b.sum_of_rows();
  Symbols symbols;
  symbols.push_back(a.graph.symbols[0]);
  const ValueNumbers numbers({&a.graph, &b.graph}, symbols);
  CHECK_EQ(numbers.of(0, a.x), numbers.of(1, b.x));
  CHECK(numbers.of(0, sum) != numbers.of(1, other));
  CHECK(!numbers.common(numbers.of(0, sum)));
  // Four rows hold the sum of three.
  CHECK_EQ(numbers.at(0, numbers.of(1, other)) == kNoValue, false);
}

}  // namespace
}  // namespace samegrad::testing
