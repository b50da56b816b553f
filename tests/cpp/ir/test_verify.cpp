// A graph in which anything is wrong is refused, by what is wrong.
#include <functional>

#include "base/error.h"
#include "check.h"
#include "error_message.h"
#include "fake_ops.h"

namespace samegrad::testing {
namespace {

const OpDef& unary() {
  static const OpDef op = fake_op("fake_unary", 1);
  return op;
}

// An argument that differs between replicas, two nodes, an output and a variable that is written.
Graph correct() {
  Graph graph;
  graph.add_symbol({});
  Builder b(graph);
  const Value x = graph.add_argument(batched_type(3), Placement::kSharded);
  const Value w = add_weight(graph, 3);
  const Value y = b.apply(unary(), Values{x})[0];
  const Value v = b.apply(configured(), Values{w}, FakeAttrs{.size = 1})[0];
  graph.outputs = {y};
  graph.writes.push_back({SlotId(0), v});
  return graph;
}

// What verify says of the graph after a change; "" if nothing.
std::string after(const std::function<void(Graph&)>& change) {
  Graph graph = correct();
  change(graph);
  return message_of([&] { verify(graph); });
}

TEST("verify accepts what a builder made") {
  CHECK_EQ(after([](Graph&) {}), "");
}

TEST("verify finds values that do not exist or come too late") {
  const auto out = [](Graph& g) { g.outputs = {g.values.next_id()}; };
  CHECK(check::has(after(out), "output %4 is not a value of the graph"), after(out));
  const auto negative = [](Graph& g) { g.nodes[NodeId(0)].inputs[0] = kNoValue; };
  CHECK(check::has(after(negative), "operand %-1 is not a value"), after(negative));
  const auto late = [](Graph& g) { g.nodes[NodeId(0)].inputs[0] = g.nodes[NodeId(1)].outputs[0]; };
  CHECK(check::has(after(late), "operand %3 is used before it is made"), after(late));
  const auto written = [](Graph& g) { g.writes[0].value = Value(99); };
  CHECK(check::has(after(written), "[weight] assigned value %99 is not a value"), after(written));
}

TEST("verify finds wrong types, localities and numbers of results") {
  const auto type = [](Graph& g) { g.values[Value(2)].type.dtype = DType::kFloat64; };
  CHECK(check::has(after(type), "[fake_unary] result %2 should be float32"), after(type));
  const auto locality = [](Graph& g) { g.nodes[NodeId(0)].locality = Locality::kBatchReduction; };
  CHECK(check::has(after(locality), "[fake_unary] should be of locality"), after(locality));
  const auto fewer = [](Graph& g) { g.nodes[NodeId(0)].outputs.clear(); };
  CHECK(check::has(after(fewer), "should have 1 results but has 0"), after(fewer));
  const auto arity = [](Graph& g) { g.nodes[NodeId(0)].inputs.push_back(Value(0)); };
  CHECK(check::has(after(arity), "takes 1 operands: got 2"), after(arity));
}

TEST("verify finds results that are said to come from elsewhere") {
  const auto index = [](Graph& g) { g.values[Value(2)].index = 1; };
  CHECK(check::has(after(index), "is said to come from elsewhere"), after(index));
  const auto twice = [](Graph& g) { g.nodes.push_back(g.nodes[NodeId(0)]); };
  CHECK(check::has(after(twice), "is said to come from elsewhere"), after(twice));
  const auto argument = [](Graph& g) { g.values[Value(0)].index = 5; };
  CHECK(check::has(after(argument), "value %0 comes from number 5 of 1"), after(argument));
}

TEST("verify finds values that may differ between replicas and are called equal") {
  const auto equal = [](Graph& g) { g.values[Value(2)].placement = Placement::kReplicated; };
  CHECK(check::has(after(equal), "may differ between replicas, but is said to be equal"),
        after(equal));
  // A pass may have found an operand to be equal: to stay careful is not a mistake.
  CHECK_EQ(after([](Graph& g) { g.values[Value(0)].placement = Placement::kReplicated; }), "");
}

TEST("verify finds attributes and regions that are not those of the row") {
  const auto none = [](Graph& g) { g.nodes[NodeId(1)].attrs = {}; };
  CHECK(check::has(after(none), "[configured] attributes must be of FakeAttrs"), after(none));
  const auto other = [](Graph& g) { g.nodes[NodeId(1)].attrs = OtherAttrs{1}; };
  CHECK(check::has(after(other), "[configured] attributes must be of FakeAttrs"), after(other));
  const auto region = [](Graph& g) {
    g.nodes[NodeId(1)].regions = {std::make_shared<const Graph>(correct())};
  };
  CHECK(check::has(after(region), "[configured] has 0 regions: got 1"), after(region));
}

TEST("verify goes into regions") {
  OpDef op = fake_op("runs", 1);
  op.regions = {"body"};
  Graph inside = correct();
  inside.values[Value(2)].type.dtype = DType::kFloat64;
  const auto wrong = [&](Graph& g) {
    g.nodes[NodeId(0)].op = &op;
    g.nodes[NodeId(0)].regions = {std::make_shared<const Graph>(inside)};
  };
  CHECK(check::has(after(wrong), "[fake_unary] result %2 should be float32"), after(wrong));
}

TEST("verify finds writes that a variable cannot take") {
  const auto twice = [](Graph& g) { g.writes.push_back(g.writes[0]); };
  CHECK(check::has(after(twice), "[weight] is written twice"), after(twice));
  const auto differs = [](Graph& g) { g.values[Value(3)].placement = Placement::kVarying; };
  CHECK(check::has(after(differs), "[weight] is equal on all replicas and is assigned %3"),
        after(differs));
  const auto shape = [](Graph& g) {
    g.writes[0].value = g.add_constant(Array::number(DType::kFloat32, 1));
  };
  CHECK(check::has(after(shape), "[weight] is a variable of float32 (3,)"), after(shape));
  const auto nobody = [](Graph& g) { g.writes[0].variable = SlotId(); };
  CHECK(check::has(after(nobody), "a write has no variable"), after(nobody));
}

}  // namespace
}  // namespace samegrad::testing
