// An all-reduce is taken of the sums over examples themselves, and of no share of what is equal on
// all replicas.
#include "passes/hoist_all_reduce.h"

#include "check.h"
#include "ir/builder.h"
#include "ops/control.h"
#include "ops/registry.h"
#include "passes/passes.h"

namespace samegrad::testing {
namespace {

// A program of three replicas with a weight w and a sum s over the examples in its shape.
struct ReplicatedProgram {
  Graph graph;
  Builder b;
  Value w, s;

  ReplicatedProgram() : b(graph) {
    register_all_ops();
    graph.replicas = 3;
    graph.add_symbol({});
    const Value rows =
        graph.add_argument({DType::kFloat32, {kBatchDim, 2}, {0, 1, 0}}, Placement::kSharded);
    w = graph.add_argument({DType::kFloat32, {2}, {}});
    s = b("reduce_sum", {rows}, ReduceAttrs{.axes = {0}});
  }
  Value share(Value value) { return b("replica_share", {value}); }
  Value number(double value) { return b.number(DType::kFloat32, value); }

  // What the all-reduce of a value has become.
  std::string reduced(Value value) {
    graph.outputs = {b("all_reduce", {value})};
    verify(graph);
    const Graph after = eliminate_dead(hoist_all_reduce(graph));
    verify(after);
    return formula(after, after.outputs[0]);
  }

  static std::string formula(const Graph& graph, Value value) {
    const ValueInfo& info = graph.values[value];
    if (info.source == Source::kArgument) return info.argument() == 0 ? "rows" : "w";
    if (info.source == Source::kConstant) {
      return std::to_string(int(*graph.constants[info.constant()].data<float>()));
    }
    const Node& node = graph.nodes[info.node()];
    std::string text = node.op->name + "(";
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      text += (k ? ", " : "") + formula(graph, node.inputs[k]);
    }
    return text + ")";
  }
};

const std::string kSum = "all_reduce(reduce_sum(rows))";

TEST("the shares of a value add up to the value") {
  ReplicatedProgram p;
  CHECK_EQ(p.reduced(p.share(p.w)), "w");
  CHECK_EQ(p.reduced(p.b("neg", {p.share(p.b("exp", {p.w}))})), "neg(exp(w))");
}

TEST("shares beside sums are added behind the all-reduce, in the order of the program") {
  ReplicatedProgram p;
  const Value c = p.share(p.w);
  CHECK_EQ(p.reduced(p.b("add", {p.s, c})), "add(" + kSum + ", w)");
  CHECK_EQ(p.reduced(p.b("add", {p.b("sub", {c, p.s}), p.b("add", {c, p.s})})),
           "add(sub(w, " + kSum + "), add(w, " + kSum + "))");
}

TEST("what is linear in a share becomes that of the value") {
  ReplicatedProgram p;
  const Value one = p.share(p.number(1));
  const Value grown = p.b("broadcast_like", {one, p.w});
  CHECK_EQ(p.reduced(p.b("mul", {p.b("mul", {grown, p.w}), p.number(7)})),
           "mul(mul(broadcast_like(1, w), w), 7)");
  const Value positive = p.b("greater", {p.w, p.number(0)});
  const Value chosen = p.b("select", {positive, p.share(p.w), p.b("div", {p.s, p.w})});
  CHECK_EQ(p.reduced(p.b("reduce_sum", {chosen}, ReduceAttrs{.axes = {0}})),
           "reduce_sum(select(greater(w, 0), w, div(" + kSum + ", w)))");
}

TEST("a share of sums is their sum over the replicas, divided") {
  ReplicatedProgram p;
  CHECK_EQ(p.reduced(p.share(p.b("add", {p.s, p.share(p.w)}))), "div(add(" + kSum + ", w), 3)");
}

TEST("what is not a share counts as often as there are replicas") {
  ReplicatedProgram p;
  CHECK_EQ(p.reduced(p.b("add", {p.b("add", {p.s, p.share(p.w)}), p.w})),
           "add(add(" + kSum + ", w), mul(w, 3))");
}

TEST("a view of a share that is the whole value is one for all replicas") {
  ReplicatedProgram p;
  const Value whole = p.share(p.b("mul", {p.w, p.number(3)}));
  CHECK_EQ(p.reduced(p.b("stop_gradient", {whole})), "all_reduce(stop_gradient(w))");
}

TEST("what is not linear in a share stays each replica's own") {
  ReplicatedProgram p;
  const Value c = p.share(p.w);
  for (const Value own : {p.b("exp", {c}), p.b("mul", {c, c}), p.b("mul", {c, p.s})}) {
    CHECK(p.graph.placement(own) == Placement::kVarying);
    CHECK(p.reduced(own).starts_with("all_reduce("));
  }
}

TEST("a mean over the replicas stays one, and so does what is not reduced") {
  ReplicatedProgram p;
  const Value c = p.b("add", {p.s, p.share(p.w)});
  p.graph.outputs = {p.b("all_reduce", {c}, AllReduceAttrs{.op = ReduceOp::kMean}), c};
  const Graph after = hoist_all_reduce(p.graph);
  verify(after);
  CHECK_EQ(ReplicatedProgram::formula(after, after.outputs[0]),
           "all_reduce(add(reduce_sum(rows), replica_share(w)))");
  CHECK_EQ(ReplicatedProgram::formula(after, after.outputs[1]),
           "add(reduce_sum(rows), replica_share(w))");
}

TEST("shares are added behind the all-reduce of a branch, too") {
  ReplicatedProgram p;
  std::vector<GraphPtr> branches;
  for (const bool with_share : {true, false}) {
    Graph branch;
    branch.replicas = 3;
    Builder b(branch);
    const Value w = branch.add_argument({DType::kFloat32, {2}, {}});
    const Value s = branch.add_argument({DType::kFloat32, {2}, {}}, Placement::kPartial);
    branch.outputs = {with_share ? b("add", {s, b("replica_share", {w})}) : b("mul", {s, w})};
    branches.push_back(std::make_shared<const Graph>(std::move(branch)));
  }
  const Value condition = p.graph.add_argument({DType::kBool, {}, {}});
  const Value chosen = p.b.apply(OpRegistry::instance().get("cond"), Values{condition, p.w, p.s},
                                 CondAttrs{}, branches)[0];
  p.graph.outputs = {p.b("all_reduce", {chosen})};
  const Graph after = eliminate_dead(hoist_all_reduce(p.graph));
  verify(after);
  const Node& node = *after.producer(after.outputs[0]);
  CHECK_EQ(node.op->name, "cond");
  CHECK_EQ(ReplicatedProgram::formula(after, node.inputs[2]), kSum);
  const Graph& taken = *node.regions[0];
  const Node& sum = *taken.producer(taken.outputs[0]);
  CHECK_EQ(sum.op->name, "add");
  CHECK(taken.values[sum.inputs[1]].source == Source::kArgument);  // w itself
  CHECK(!taken.varying(taken.outputs[0]));
}

TEST("no constant is made of the share of one") {
  ReplicatedProgram p;
  p.graph.outputs = {p.share(p.number(1))};
  CHECK_EQ(fold_constants(p.graph).nodes.size(), p.graph.nodes.size());
}

}  // namespace
}  // namespace samegrad::testing
