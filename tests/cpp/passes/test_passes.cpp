// Each pass on a small graph: it does its rewrite, and the bits stay.
#include "base/thresholds.h"
#include "passes/passes.h"

#include <algorithm>

#include "nodes.h"
#include "ops/attributes.h"
#include "ops/function_flops.h"
#include "ops/interpreter.h"
#include "ops/scan.h"

namespace samegrad::testing {
namespace {

class Program {
 public:
  Program() : b(graph) {
    register_all_ops();
    graph.add_symbol({});
    graph.symbols[0].traced_count = kExamples;
  }

  Value batched(const Shape& example, DType dtype = DType::kFloat32) {
    Shape shape = example, type_shape = example;
    shape.insert(0, kExamples);
    type_shape.insert(0, kBatchDim);
    arguments.push_back(filled(dtype, shape, -2 - double(arguments.size()), 2));
    return graph.add_argument({dtype, type_shape, {0, 1, 0}});
  }
  Value plain(const Shape& shape) {
    arguments.push_back(filled(DType::kFloat32, shape, -1 - double(arguments.size()), 1));
    return graph.add_argument({DType::kFloat32, shape, {}});
  }
  Value number(double value) { return b.number(DType::kFloat32, value); }

  // The graph after the pass, whose outputs have the bits of those before.
  Graph after(Graph (*pass)(Graph)) {
    verify(graph);
    const Graph rewritten = pass(graph);
    verify(rewritten);
    const std::vector<Array> before = outputs(graph), now = outputs(rewritten);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(same_bits(before[i], now[i]), i);
    return rewritten;
  }

  static constexpr std::int64_t kExamples = 7;
  Graph graph;
  Builder b;
  std::vector<Array> arguments;

 private:
  std::vector<Array> outputs(const Graph& g) const {
    const PerValue<Array> arrays = Interpreter(g, kExamples).run(arguments);
    std::vector<Array> found;
    for (Value output : g.outputs) found.push_back(arrays[output]);
    return found;
  }
};

// Fusion, after the passes that prepare a graph for it.
Graph fused(Graph graph) {
  return fuse_elementwise(rematerialize_for_later_loops(
      split_tree_reductions(redirect_type_operands(std::move(graph)))));
}

TEST("what computes gets float32 and rounds once, and what moves elements keeps 16 bits") {
  Program p;
  const Value x = p.graph.add_argument({DType::kBFloat16, {kBatchDim, 3}, {0, 1, 0}});
  const Value joined = p.b("concat", {x, p.b("mul", {p.b("tanh", {x}), x})}, ConcatAttrs{1});
  p.graph.outputs = {p.b("reduce_sum", {joined}, ReduceAttrs{.axes = {0}})};
  verify(p.graph);
  const Graph after = promote_types(p.graph);
  verify(after);
  CHECK_EQ(count(after, "cast"), 7);
  CHECK(after.type(after.outputs[0]).dtype == DType::kBFloat16);
  for (const Node& node : after.nodes) {
    const DType dtype = after.type(node.outputs[0]).dtype;
    if (computes(*node.op)) CHECK(dtype == DType::kFloat32, node.op->name);
    if (node.op->name == "concat") CHECK(dtype == DType::kBFloat16);
    if (node.op->name == "reduce_sum") CHECK(node.locality == Locality::kBatchReduction);
  }
  CHECK_EQ(promote_types(after).nodes.size(), after.nodes.size());
}

TEST("what nobody reads goes") {
  Program p;
  const Value x = p.batched({3});
  p.b("exp", {p.b("tanh", {x})});
  p.graph.outputs = {p.b("sin", {x})};
  const Graph after = p.after(eliminate_dead);
  CHECK_EQ(after.nodes.size(), std::size_t(1));
  CHECK_EQ(count(after, "sin"), 1);
}

TEST("constants that nobody needs go, the others stay what they are") {
  Program p;
  const Value x = p.batched({3});
  p.b("mul", {x, p.number(5)});
  p.graph.outputs = {p.b("add", {p.b("mul", {x, p.number(3)}), p.number(4)})};
  const Graph after = p.after(eliminate_dead);
  CHECK_EQ(after.constants.size(), std::size_t(2));
}

TEST("equal nodes become one, also those of equal operands") {
  Program p;
  const Value x = p.batched({3});
  const Value a = p.b("exp", {p.b("tanh", {x})}), b = p.b("exp", {p.b("tanh", {x})});
  p.graph.outputs = {p.b("sub", {a, p.b("mul", {b, p.number(3)})}), p.b("mul", {a, p.number(3)})};
  const Graph after = p.after(eliminate_common);
  CHECK_EQ(count(after, "tanh"), 1);
  CHECK_EQ(count(after, "exp"), 1);
  CHECK_EQ(count(after, "mul"), 1);
}

TEST("nodes of other operands, other order or other attributes stay apart") {
  Program p;
  const Value x = p.batched({3}), y = p.batched({3});
  const Attrs rows = ReduceAttrs{.axes = {1}, .keepdims = false};
  const Attrs kept = ReduceAttrs{.axes = {1}, .keepdims = true};
  p.graph.outputs = {p.b("sub", {x, y}), p.b("sub", {y, x}), p.b("reduce_sum", {x}, rows),
                     p.b("reduce_sum", {x}, kept)};
  CHECK_EQ(p.after(eliminate_common).nodes.size(), std::size_t(4));
}

TEST("constants of examples with other symbolic sizes stay apart") {
  Program p;
  for (int i = 0; i < 2; ++i) p.graph.add_symbol({});
  const auto rows = [&](int symbol) {
    const Array one = Array::scalar(1.f).reshaped({1, 1});
    return p.graph.add_constant(one, {0, kSymbols + symbol, 0});
  };
  p.graph.outputs = {p.b("exp", {rows(1)}), p.b("exp", {rows(2)}), p.b("exp", {rows(2)})};
  CHECK_EQ(count(eliminate_common(p.graph), "exp"), 2);
}

TEST("random draws are never merged") {
  Program p;
  const OpDef& op = OpRegistry::instance().get("random_uniform_like");
  const Value x = p.batched({3});
  p.graph.outputs = {p.b.apply(op, Values{x})[0], p.b.apply(op, Values{x})[0]};
  CHECK_EQ(count(p.after(eliminate_common), "random_uniform_like"), 2);
}

TEST("constants are folded, through several nodes") {
  Program p;
  const Value x = p.batched({3});
  const Value c = p.b("exp", {p.b("add", {p.number(0.3), p.number(0.4)})});
  p.graph.outputs = {p.b("mul", {x, c}), c};
  const Graph after = p.after(fold_constants);
  CHECK_EQ(count(after, "exp") + count(after, "add"), 0);
  CHECK_EQ(count(after, "mul"), 1);
}

TEST("a product takes its bias and relu") {
  for (const bool relu : {false, true}) {
    Program p;
    const Value y = p.b("matmul", {p.batched({5}), p.plain({5, 3})});
    Value result = p.b("add", {y, p.plain({3})});
    if (relu) result = p.b("relu", {result});
    p.graph.outputs = {result};
    const Graph after = p.after(fuse_epilogue);
    CHECK_EQ(count(after, "matmul_bias"), 1);
    CHECK_EQ(after.nodes.size(), std::size_t(1));
  }
}

TEST("a product that somebody else reads keeps its bias outside") {
  Program p;
  const Value y = p.b("matmul", {p.batched({5}), p.plain({5, 3})});
  p.graph.outputs = {p.b("add", {y, p.plain({3})}), y};
  CHECK_EQ(count(p.after(fuse_epilogue), "matmul_bias"), 0);
}

TEST("who reads an identity reads its operand, and elementwise nodes around it are fused") {
  Program p;
  const Value x = p.batched({3});
  const Value y = p.b("exp", {p.b("stop_gradient", {p.b("identity", {p.b("neg", {x})})})});
  p.graph.outputs = {y, p.b("identity", {x})};
  const Graph after = p.after(propagate_copies);
  CHECK_EQ(count(after, "identity") + count(after, "stop_gradient"), 0);
  CHECK_EQ(after.nodes.size(), std::size_t(2));
  CHECK_EQ(after.outputs[1], Value(0));
}

TEST("who broadcasts leading axes of size 1 reads what they were added to") {
  Program p;
  const Value x = p.batched({4, 3}), bias = p.plain({3});
  const Value wide = p.b("reshape", {bias}, ReshapeAttrs{.shape = {1, 1, 3}});
  const Value one = p.b("expand_dims", {p.plain({2, 3})}, ExpandDimsAttrs{.axes = {0}});
  p.graph.outputs = {p.b("add", {x, wide}), p.b("mul", {wide, one})};
  const Graph after = p.after(fold_broadcasts);
  const Node& add = *after.producer(after.outputs[0]);
  CHECK(after.type(add.inputs[1]).shape == Shape({3}));
  // Three axes are there because of the operands' alone.
  const Node& mul = *after.producer(after.outputs[1]);
  CHECK(after.type(mul.inputs[0]).shape == Shape({1, 1, 3}));
  CHECK(after.type(mul.inputs[1]).shape == Shape({1, 2, 3}));
}

TEST("a product takes a bias that was reshaped to its rank") {
  Program p;
  const Value y = p.b("matmul", {p.batched({4, 5}), p.plain({5, 3})});
  const Value bias = p.b("reshape", {p.plain({3})}, ReshapeAttrs{.shape = {1, 1, 3}});
  p.graph.outputs = {p.b("relu", {p.b("add", {y, bias})})};
  const Graph after = p.after([](Graph graph) { return run_passes(std::move(graph), {}); });
  CHECK_EQ(count(after, "matmul_bias"), 1);
  CHECK_EQ(after.nodes.size(), std::size_t(1));
}

TEST("axes of another size, behind others or of examples are read as they are") {
  Program p;
  const Value x = p.batched({3, 3});
  const Value rows = p.b("reshape", {p.plain({3})}, ReshapeAttrs{.shape = {3, 1}});
  const Value batch = p.b("expand_dims", {p.batched({3})}, ExpandDimsAttrs{.axes = {0}});
  p.graph.outputs = {p.b("add", {x, rows}), p.b("add", {batch, p.plain({1, 1, 3})})};
  const Graph after = p.after(fold_broadcasts);
  for (std::size_t i = 0; i < 2; ++i) {
    const Node& add = *after.producer(after.outputs[i]);
    const Node* shown = after.producer(add.inputs[1 - i]);
    CHECK(shown && shown->op->has(kAliases), i);
  }
}

TEST("a cross-entropy becomes its rows, which its gradient shares") {
  Program p;
  const Value x = p.batched({7}), labels = p.batched({7});
  const Value loss = p.b("softmax_cross_entropy", {x, labels});
  p.graph.outputs = {loss, p.b("log_softmax", {x})};
  const Graph after = p.after([](Graph graph) {
    return eliminate_dead(eliminate_common(decompose_composites(std::move(graph))));
  });
  CHECK_EQ(count(after, "softmax_cross_entropy"), 0);
  CHECK_EQ(count(after, "log_softmax"), 1);
  CHECK(after.type(after.outputs[0]) == p.graph.type(loss));
}

TEST("a chain of elementwise nodes becomes one") {
  if (thresholds().fused_operations < 2) return;  // forced: nothing is fused
  Program p;
  const Value x = p.batched({33}), y = p.batched({33});
  Value z = p.b("tanh", {p.b("mul", {x, y})});
  z = p.b("sub", {p.b("mul", {z, p.number(0.37)}), x});
  p.graph.outputs = {p.b("exp", {z}), z};
  const Graph after = p.after(fused);
  CHECK_EQ(count(after, "fused_elementwise"), 1);
  CHECK_EQ(after.nodes.size(), std::size_t(1));
}

TEST("a fused node does not go round what is between its parts") {
  if (thresholds().fused_operations < 2) return;  // forced: nothing is fused
  Program p;
  const Value x = p.batched({5});
  const Value a = p.b("tanh", {x});
  const Value sums = p.b("cumsum", {a}, ScanAttrs{.axis = 1});
  p.graph.outputs = {p.b("sub", {p.b("exp", {a}), p.b("mul", {sums, sums})})};
  const Graph after = p.after(fused);
  CHECK_EQ(count(after, "cumsum"), 1);
  CHECK(count(after, "fused_elementwise") >= 1);
}

TEST("what rows are reduced to goes back to their elements in one loop") {
  if (thresholds().fused_operations < 16) return;  // forced: little is fused
  for (const bool keepdims : {true, false}) {
    Program p;
    const Value x = p.batched({3, 33}), scale = p.plain({33});
    const Attrs rows = ReduceAttrs{{2}, keepdims};
    Value total = p.b("reduce_sum", {p.b("square", {x})}, rows);
    total = p.b("rsqrt", {p.b("add", {total, p.number(0.5)})});
    if (keepdims) {
      const Value y = p.b("mul", {p.b("mul", {x, total}), scale});
      p.graph.outputs = {p.b("softmax", {y}), p.b("broadcast_like", {total, x}), total};
    } else {
      p.graph.outputs = {total};
    }
    const Graph after = p.after(fused);
    CHECK_EQ(count(after, "fused_rows"), 1);
    CHECK_EQ(after.nodes.size(), std::size_t(1));
  }
}

const Node& find(const Graph& graph, std::string_view op, std::string_view part) {
  return *std::ranges::find_if(graph.nodes, [&](const Node& n) {
    return n.op->name == op && to_string(n.attrs).find(part) != std::string::npos;
  });
}

TEST("the rows of each example are reduced in the loop that makes them") {
  if (thresholds().fused_operations < 16 || thresholds().deferred_bytes < 1024) return;  // forced
  for (const bool keepdims : {true, false}) {
    for (const char* op : {"reduce_sum", "reduce_max"}) {
      for (const std::int64_t rows : {2, 11, 128, 129, 300, 700}) {
        Program p;
        const Value x = p.batched({rows, 33}), scale = p.plain({33});
        const Value y = p.b("mul", {p.b("tanh", {x}), scale});
        p.graph.outputs = {p.b(op, {y}, ReduceAttrs{{0, 1}, keepdims}),
                           p.b(op, {p.b("square", {y})}, ReduceAttrs{{1}, true})};
        const Graph after = p.after(fused);
        CHECK_EQ(count(after, "fused_rows"), 1);
        CHECK_EQ(count(after, op), 1);
        CHECK_EQ(find(after, "fused_rows", "tanh").outputs.size(), std::size_t(2));
      }
    }
  }
}

TEST("reductions of other axes, to one number and of one row of each example stay whole") {
  for (const auto& axes : {Ints{0, 2}, Ints{0, 1, 2, 3}, Ints{0}}) {
    Program p;
    const Value x = p.batched({4, 5, 6});
    p.graph.outputs = {p.b("reduce_sum", {p.b("exp", {x})}, ReduceAttrs{axes, false})};
    CHECK_EQ(count(p.after(fused), "reduce_sum"), 1);
  }
  Program p;
  const Value x = p.batched({1, 1, 6});
  p.graph.outputs = {p.b("reduce_sum", {p.b("exp", {x})}, ReduceAttrs{{0, 1, 2}, true})};
  CHECK_EQ(p.after(fused).nodes.size(), std::size_t(2));
}

TEST("a later loop makes again what costs it less than memory") {
  if (thresholds().fused_operations < 16 || thresholds().deferred_bytes < 1024) return;  // forced
  Program p;
  const Value x = p.batched({40, 40, 3}), centre = p.plain({3});
  const Value distance = p.b("sub", {x, centre});
  const Value squares = p.b("reduce_sum", {p.b("square", {distance})}, ReduceAttrs{{0, 1, 2}});
  p.graph.outputs = {p.b("exp", {p.b("mul", {distance, squares})})};
  const Graph after = p.after(fused);
  CHECK_EQ(count(after, "fused_rows"), 2);
  CHECK_EQ(find(after, "fused_rows", "reduce_sum").outputs.size(), std::size_t(1));
  CHECK_EQ(std::ranges::count(find(after, "fused_rows", "exp").inputs, x), 1);
}

TEST("a later loop makes again whatever is one operation for each element") {
  if (thresholds().fused_operations < 16 || thresholds().deferred_bytes < 1024) return;  // forced
  register_all_ops();
  int tried = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    const bool function = op->block.kind == BlockFn::kUnary || op->block.kind == BlockFn::kBinary;
    if (!function || flops_of_function(op->block) > 1) continue;
    Program p;
    const Value x = p.batched({40, 40, 3});
    const bool logical = op->name.starts_with("logical_");
    const Value operand = logical ? p.b("greater", {x, p.number(0)}) : x;
    const std::size_t arity = std::size_t(op->min_arity);
    const Value y = p.b.apply(*op, Values(arity, operand))[0];
    const Value made = p.b("cast", {y}, CastAttrs{.dtype = DType::kFloat32});
    const Value sums = p.b("reduce_sum", {made}, ReduceAttrs{{0, 1, 2}});
    p.graph.outputs = {p.b("exp", {p.b("mul", {made, sums})})};
    const Graph after = p.after(fused);
    CHECK_EQ(std::ranges::count(find(after, "fused_rows", "exp").inputs, x), 1);
    ++tried;
  }
  CHECK(tried > 20, tried);
}

TEST("a later loop reads what is dear to make, leaves the graph or is read there anyway") {
  if (thresholds().fused_operations < 16) return;  // forced
  Program p;
  const Value x = p.batched({40, 40, 3});
  const Value dear = p.b("tanh", {x}), shown = p.b("neg", {x});
  const Value sums = p.b("reduce_sum", {p.b("mul", {dear, shown})}, ReduceAttrs{{0, 1, 2}});
  p.graph.outputs = {p.b("mul", {p.b("mul", {dear, shown}), sums}), shown};
  const Graph after = p.after(fused);
  const auto steps = [&](std::string_view name) {
    std::ptrdiff_t found = 0;
    for (const Node& node : after.nodes) {
      const std::string text = to_string(node.attrs);
      found += text.find(name) != std::string::npos || node.op->name == name;
    }
    return found;
  };
  CHECK_EQ(steps("tanh"), 1);
  CHECK_EQ(steps("neg"), 1);
}

TEST("who asks only for the type of an elementwise result asks its operand") {
  Program p;
  const Value x = p.batched({3, 5}), one = p.plain({5});
  const Value y = p.b("exp", {p.b("mul", {x, one})});
  p.graph.outputs = {p.b("broadcast_like", {one, y}), p.b("reduce_sum", {y}, ReduceAttrs{{0}})};
  const Graph after = p.after(redirect_type_operands);
  CHECK_EQ(find(after, "broadcast_like", "").inputs[1], x);
}

TEST("who asks only for the type of what nobody reads asks what is made anyway") {
  Program p;
  const Value x = p.batched({3}), w = p.plain({3, 3});
  const Value y = p.b("matmul", {x, w}), z = p.b("matmul", {y, w});
  const Value read = p.b("full_like", {y}, FullAttrs{.value = 1.0});
  const Value zeros = p.b("full_like", {p.b("tanh", {z})}, FullAttrs{.value = 2.0});
  p.graph.outputs = {zeros, p.b("mul", {y, read})};
  const Graph after = eliminate_dead(p.after(redirect_type_operands));
  CHECK_EQ(count(after, "matmul"), 1);
  CHECK_EQ(after.producer(after.outputs[0])->inputs[0], Value(0));
  const Node& mul = *after.producer(after.outputs[1]);
  CHECK_EQ(after.producer(mul.inputs[1])->inputs[0], mul.inputs[0]);
}

TEST("what there is one of for each row is not taken for a row") {
  if (thresholds().fused_operations < 16) return;  // forced: little is fused
  Program p;
  const Value x = p.plain({6, 6});
  const Value sums = p.b("reduce_sum", {p.b("exp", {x})}, ReduceAttrs{{1}, false});
  const Value y = p.b("mul", {x, sums});  // by columns
  p.graph.outputs = {p.b("mul", {p.b("reduce_sum", {y}, ReduceAttrs{{1}, false}), sums}), y};
  CHECK(count(p.after(fused), "fused_rows") >= 1);
}

TEST("rows that only what there is one of for each could tell stay apart") {
  Program p;
  const Value x = p.batched({3, 1}), like = p.batched({3, 5});
  const Value y = p.b("broadcast_like", {p.b("exp", {x}), like});
  p.graph.outputs = {p.b("softmax", {p.b("tanh", {y})})};
  CHECK_EQ(count(p.after(fused), "fused_rows"), 0);
}

TEST("reductions over the examples, over other axes and of long rows stay apart") {
  Program p;
  const Value x = p.batched({3, 5}), y = p.b("exp", {x});
  const Value z = p.b("exp", {p.batched({thresholds().fused_row + 1})});
  const auto sum = [&](Value v, std::vector<std::int64_t> axes) {
    return p.b("reduce_sum", {v}, ReduceAttrs{std::move(axes), true});
  };
  const Value dropped = p.b("reduce_sum", {y}, ReduceAttrs{{1}, false});
  p.graph.outputs = {sum(y, {0}), dropped, sum(y, {0, 1, 2}), sum(z, {1})};
  const Graph after = p.after(fused);
  CHECK_EQ(count(after, "reduce_sum"), 4);
  CHECK_EQ(count(after, "fused_rows"), 0);
}

TEST("relu's mask moves to the small side of a pooling") {
  Program p;
  const Value x = p.b("relu", {p.batched({6, 6, 2})});
  const OpDef& pool = OpRegistry::instance().get("max_pool2d");
  const Attrs attrs = PoolAttrs{{.strides = {2, 2}}, {2, 2}};
  const Values pooled = p.b.apply(pool, Values{x}, attrs);
  const Value ct = p.batched({3, 3, 2});
  const Value grad = p.b("max_pool2d_grad", {ct, pooled[1], x}, attrs);
  const Value mask = p.b("greater", {x, p.number(0)});
  p.graph.outputs = {p.b("select", {mask, grad, p.number(0)})};
  const Graph after = p.after(sink_masks);
  const auto last = std::ranges::find_if(
      after.nodes, [&](const Node& n) { return n.outputs[0] == after.outputs[0]; });
  CHECK_EQ(last->op->name, "max_pool2d_grad");
}

TEST("all passes together keep the bits and the writes") {
  Program p;
  const Value x = p.batched({5});
  const Value y = p.b("add", {p.b("matmul", {x, p.plain({5, 3})}), p.plain({3})});
  const Value z = p.b("mul", {p.b("relu", {y}), p.b("exp", {p.number(0.25)})});
  p.graph.outputs = {z, p.b("reduce_sum", {z}, ReduceAttrs{.axes = {0}})};
  const Graph after = p.after([](Graph g) { return run_passes(std::move(g), {}); });
  CHECK(after.nodes.size() < p.graph.nodes.size());
  CHECK_EQ(run_passes(p.graph, PassOptions::none()).nodes.size(), p.graph.nodes.size());
}

}  // namespace
}  // namespace samegrad::testing
