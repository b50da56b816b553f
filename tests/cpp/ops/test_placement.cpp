// What a value is on a replica: replicated, rows, a part of a sum, or its own.
#include "check.h"
#include "ir/builder.h"
#include "ir/placement.h"
#include "ops/attributes.h"
#include "ops/scan.h"

namespace samegrad::testing {
namespace {

// A program of four replicas with rows (n, 3), a weight (3, 2) and the replica's own number.
struct Program {
  Graph graph;
  Builder b{graph};
  Value rows, weight, own;

  Program() {
    graph.replicas = 4;
    const int symbol = graph.add_symbol({});
    const ExampleAxis examples{.axis = 0, .rows_per_example = 1, .symbol = symbol};
    rows = graph.add_argument({DType::kFloat32, {kBatchDim, 3}, examples}, Placement::kSharded);
    weight = graph.add_argument({DType::kFloat32, {3, 2}, {}});
    own = graph.add_argument({DType::kFloat32, {3, 2}, {}}, Placement::kVarying);
  }

  Value partial() {
    const Value product = b("matmul", {rows, weight});
    return b("matmul", {rows, product}, MatmulAttrs{.transpose_a = true});
  }
  std::string of(Value value) const {
    const std::string suffix = suffix_of(graph.placement(value));
    return suffix.empty() ? "replicated" : suffix.substr(2);
  }
  std::string of(const char* op, std::initializer_list<Value> inputs, Attrs attrs = {}) {
    return of(b(op, inputs, std::move(attrs)));
  }
};

using Axes = std::vector<std::int64_t>;

TEST("what is made of each example is rows, on any axis") {
  Program p;
  const Value product = p.b("matmul", {p.rows, p.weight});
  CHECK_EQ(p.of(product), "rows");
  const Value turned = p.b("transpose", {product}, TransposeAttrs{.perm = {1, 0}});
  CHECK_EQ(p.of(turned), "rows");
  CHECK_EQ(p.of("exp", {turned}), "rows");
  CHECK_EQ(p.of("reduce_sum", {turned}, ReduceAttrs{.axes = {0}}), "rows");
  CHECK_EQ(p.of("full_like", {product}, FullAttrs{.value = 1.0}), "rows");
}

TEST("a sum over the examples is partial, on any axis; another reduction is each replica's own") {
  Program p;
  CHECK_EQ(p.of(p.partial()), "partial");
  CHECK_EQ(p.of("reduce_sum", {p.rows}, ReduceAttrs{.axes = {0}}), "partial");
  const Value turned = p.b("transpose", {p.rows}, TransposeAttrs{.perm = {1, 0}});
  CHECK_EQ(p.of("reduce_sum", {turned}, ReduceAttrs{.axes = {1}}), "partial");
  CHECK_EQ(p.of("reduce_max", {p.rows}, ReduceAttrs{.axes = {0}}), "own");
  CHECK_EQ(p.of("reverse", {p.rows}, ReverseAttrs{.axes = {0}}), "own");
}

TEST("what computes with several examples is each replica's own, on any axis") {
  Program p;
  const Value turned = p.b("transpose", {p.rows}, TransposeAttrs{.perm = {1, 0}});
  for (const char* op : {"softmax", "log_softmax"}) {
    CHECK_EQ(p.of(op, {p.rows}), "rows");
    CHECK_EQ(p.of(op, {turned}), "own");
  }
  CHECK_EQ(p.of("cumsum", {turned}, ScanAttrs{.axis = 0}), "rows");
  CHECK_EQ(p.of("cumsum", {turned}, ScanAttrs{.axis = 1}), "own");
  CHECK_EQ(p.of("slice", {turned}, SliceAttrs{{0, 0}, {2, INT64_MAX}, {1, 1}}), "rows");
  CHECK_EQ(p.of("slice", {turned}, SliceAttrs{{0, 1}, {2, INT64_MAX}, {1, 1}}), "own");
  const Value at = p.graph.add_argument({DType::kInt64, {4}, {}});
  CHECK_EQ(p.of("gather", {turned, at}, IndexAttrs{.axis = 0}), "rows");
  CHECK_EQ(p.of("gather", {turned, at}, IndexAttrs{.axis = 1}), "own");
}

TEST("a value of fixed size that no example is read for is replicated") {
  Program p;
  CHECK_EQ(p.of("iota", {p.rows}, SizeAttrs{.size = 4}), "replicated");
  CHECK_EQ(p.of("full_sizes", {p.rows}, FullSizesAttrs{{1.5}, {2, 3}}), "replicated");
  const std::int64_t examples = kSymbols + p.graph.type(p.rows).batch.symbol;
  CHECK_EQ(p.of("iota", {p.rows}, SizeAttrs{.size = examples}), "own");
  CHECK_EQ(p.of("full_sizes", {p.rows}, FullSizesAttrs{{1.5}, {2, examples}}), "rows");
}

TEST("numbers of rows are rows of the global batch") {
  Program p;
  CHECK_EQ(p.of("row_numbers", {p.rows}), "rows");
  CHECK_EQ(p.of("row_numbers", {p.weight}), "replicated");
}

TEST("a value with a size of the replica's own is its own, whatever it is made of") {
  Program p;
  const std::int64_t examples = kSymbols + p.graph.type(p.rows).batch.symbol;
  const Value one = p.b("reduce_sum", {p.weight}, ReduceAttrs{.axes = {0, 1}});
  CHECK_EQ(p.of("broadcast_to", {one}, BroadcastAttrs{.shape = {examples, 2}}), "own");
}

TEST("the number of a replica's examples is partial, that of other axes is replicated") {
  Program p;
  CHECK_EQ(p.of("size_of", {p.rows}, CountAttrs{.axes = {0, 1}}), "partial");
  CHECK_EQ(p.of("size_of", {p.rows}, CountAttrs{.axes = {1}}), "replicated");
  CHECK_EQ(p.of("global_size_of", {p.rows}, CountAttrs{.axes = {0}}), "replicated");
  CHECK_EQ(p.of("dimension_sizes", {p.rows}), "own");
}

TEST("a linear function with replicated coefficients keeps a part a part") {
  Program p;
  const Value part = p.partial();
  CHECK_EQ(p.of("neg", {part}), "partial");
  CHECK_EQ(p.of("add", {part, p.weight}), "partial");
  CHECK_EQ(p.of("sub", {p.weight, part}), "partial");
  CHECK_EQ(p.of("mul", {p.weight, part}), "partial");
  CHECK_EQ(p.of("div", {part, p.weight}), "partial");
  CHECK_EQ(p.of("matmul", {part, p.weight}, MatmulAttrs{.transpose_b = true}), "partial");
  CHECK_EQ(p.of("concat", {part, p.weight}, ConcatAttrs{.axis = 0}), "partial");
  CHECK_EQ(p.of("reduce_sum", {part}, ReduceAttrs{.axes = {0, 1}}), "partial");
  CHECK_EQ(p.of("transpose", {part}, TransposeAttrs{.perm = {1, 0}}), "partial");
  CHECK_EQ(p.of("select", {p.b("greater", {p.weight, p.weight}), part, p.weight}), "partial");
  CHECK_EQ(p.of("cast", {part}, CastAttrs{.dtype = DType::kFloat64}), "partial");
  CHECK_EQ(p.of("pad", {part}, PadAttrs{.paddings = {1, 0, 0, 0}}), "partial");
}

TEST("of many operands only those that a row says are linear") {
  OpDef op = *OpRegistry::instance().find("concat");
  op.scaled = 1u;  // the first
  Program p;
  const Value part = p.partial();
  for (const std::size_t at : {1u, 31u, 32u, 33u, 63u}) {
    Values inputs(64, p.weight);
    inputs[0] = inputs[at] = part;
    const Node& node = *p.graph.producer(p.b.apply(op, inputs, ConcatAttrs{.axis = 0})[0]);
    CHECK(!is_linear_in_partial(p.graph, node), at);
  }
}

TEST("any other function of a part is each replica's own") {
  Program p;
  const Value part = p.partial();
  CHECK_EQ(p.of("exp", {part}), "own");
  CHECK_EQ(p.of("mul", {part, part}), "own");
  CHECK_EQ(p.of("div", {p.weight, part}), "own");
  CHECK_EQ(p.of("maximum", {part, p.weight}), "own");
  CHECK_EQ(p.of("mul", {part, p.own}), "own");
  CHECK_EQ(p.of("matmul", {p.rows, part}), "own");
  CHECK_EQ(p.of("select", {p.b("greater", {part, p.weight}), p.weight, p.weight}), "own");
  CHECK_EQ(p.of("cast", {part}, CastAttrs{.dtype = DType::kInt32}), "own");
  CHECK_EQ(p.of("pad", {part}, PadAttrs{.paddings = {1, 0, 0, 0}, .value = 1.0}), "own");
  CHECK_EQ(p.of("broadcast_like", {p.b("reduce_sum", {part}, ReduceAttrs{.axes = {0, 1}}), p.rows}),
           "own");
}

TEST("a collective replicates, and what is read by its type alone gives nothing away") {
  Program p;
  const Value part = p.partial();
  CHECK_EQ(p.of("all_reduce", {part}), "replicated");
  CHECK_EQ(p.of("collective_broadcast", {p.own}), "replicated");
  CHECK_EQ(p.of("full_like", {part}, FullAttrs{.value = 0.0}), "replicated");
  CHECK_EQ(p.of("full_like", {p.own}, FullAttrs{.value = 0.0}), "replicated");
  CHECK_EQ(p.of("random_uniform_like", {p.own}), "own");
  const Value key = p.graph.add_argument({DType::kUInt32, {2}, {}});
  CHECK_EQ(p.of("stateless_random_uniform_like", {key, p.rows}), "rows");
  CHECK_EQ(p.of("stateless_random_uniform_like", {key, p.weight}), "replicated");
  CHECK_EQ(p.of("stateless_random_uniform_like", {key, p.own}), "own");
  CHECK_EQ(p.of("replica_id", {}), "own");
}

TEST("the share of what is equal on all replicas is a part, as is what is linear in it") {
  Program p;
  const Value share = p.b("replica_share", {p.weight});
  CHECK_EQ(p.of(share), "partial");
  CHECK_EQ(p.of("mul", {share, p.weight}), "partial");
  CHECK_EQ(p.of("replica_share", {share}), "partial");
  const Value examples = p.b("as_examples", {share}, ExamplesAttrs{.axis = 0});
  CHECK_EQ(p.of("mul", {examples, p.b("as_examples", {p.weight}, ExamplesAttrs{.axis = 0})}),
           "partial");
  CHECK_EQ(p.of("replica_share", {p.rows}), "rows");
  CHECK_EQ(p.of("replica_share", {p.own}), "own");
  CHECK_EQ(p.of("square", {share}), "own");
  CHECK(is_function_of_sums(p.graph, share));
}

TEST("numbers that are the same for all replicas do not become rows of one device") {
  Program p;
  p.graph.symbols[0].traced_count = 5;
  const Value table = p.graph.add_argument({DType::kFloat32, {5, 3}, {}});
  CHECK_EQ(p.of("add", {p.rows, table}), "own");
}

}  // namespace
}  // namespace samegrad::testing
