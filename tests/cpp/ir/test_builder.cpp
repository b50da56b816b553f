// What the builder makes of rows, and what it refuses.
#include "base/error.h"
#include "check.h"
#include "error_message.h"
#include "fake_ops.h"

namespace samegrad::testing {
namespace {

struct DefaultedAttrs {
  Scalar rate = 0.25;

  static constexpr auto fields() {
    return std::tuple(defaulted("rate", &DefaultedAttrs::rate, ""));
  }
};

std::string refusal_of(const OpDef& op, std::size_t operands, Attrs attrs = {},
                       std::size_t regions = 0) {
  Graph graph;
  Builder b(graph);
  const Values inputs(operands, graph.add_argument(vector_type(3)));
  return message_of([&] {
    b.apply(op, inputs, std::move(attrs),
            std::vector<GraphPtr>(regions, std::make_shared<const Graph>()));
  });
}

TEST("a row refuses other numbers of operands") {
  const OpDef pair = fake_op("pair", 2);
  CHECK_EQ(refusal_of(pair, 2), "");
  CHECK_EQ(refusal_of(pair, 1), "[pair] takes 2 operands: got 1.");
  OpDef any = fake_op("any", 1);
  any.max_arity = -1;
  CHECK_EQ(refusal_of(any, 40), "");
  CHECK_EQ(refusal_of(any, 0), "[any] takes 1 or more operands: got 0.");
}

TEST("attributes that are not given are as their struct starts") {
  Graph graph;
  Builder b(graph);
  OpDef op = row_with_attributes();
  const Value x = graph.add_argument(vector_type(3));
  b.apply(op, Values{x}, FakeAttrs{.size = 7, .rate = 2});
  const auto& given = graph.nodes[NodeId(0)].attrs.as<FakeAttrs>();
  CHECK(given.size == 7 && given.rate == Scalar(2) && given.name == "none");
  op.attrs = schema_of<DefaultedAttrs>();
  b.apply(op, Values{x});
  CHECK(graph.nodes[NodeId(1)].attrs.as<DefaultedAttrs>().rate == Scalar(0.25));
}

TEST("a row refuses to have no attributes where it requires some, and those of another struct") {
  const OpDef op = row_with_attributes();
  CHECK_EQ(refusal_of(op, 1), "[configured] attribute 'size' is required.");
  CHECK_EQ(refusal_of(op, 1, OtherAttrs{1}),
           "[configured] has FakeAttrs attributes: got OtherAttrs (size=1).");
  CHECK_EQ(refusal_of(fake_op("plain", 1), 1, OtherAttrs{1}),
           "[plain] has no attributes: got OtherAttrs (size=1).");
}

TEST("a row refuses other numbers of regions") {
  OpDef op = fake_op("runs", 1);
  CHECK_EQ(refusal_of(op, 1, {}, 1), "[runs] has 0 regions: got 1.");
  op.regions = {"body"};
  CHECK_EQ(refusal_of(op, 1, {}, 1), "");
  CHECK_EQ(refusal_of(op, 1), "[runs] has 1 regions: got 0.");
}

TEST("what differs between replicas follows from operands and traits") {
  const struct {
    std::uint32_t traits;
    bool operand, result;
  } cases[] = {{0, false, false},
               {0, true, true},
               {kCollective, true, false},
               {kReplicaInvariant, true, false},
               {kReplicaDependent, false, true},
               {kReplicaDependent, true, true}};
  for (const auto& c : cases) {
    Graph graph;
    graph.replicas = 2;
    Builder b(graph);
    const OpDef op = fake_op("row", 1, c.traits);
    const Value x = graph.add_argument(vector_type(3),
                                       c.operand ? Placement::kVarying : Placement::kReplicated);
    CHECK_EQ(graph.varying(b.apply(op, Values{x})[0]), c.result);
  }
}

TEST("derivatives carry the line of what they are derivatives of") {
  Graph graph;
  Builder b(graph);
  const OpDef op = fake_op("row", 1);
  const Value x = graph.add_argument(vector_type(3));
  {
    const Builder::Deriving outer(b, 4);
    const Builder::Deriving inner(b, 9);
    b.apply(op, Values{x});
  }
  b.apply(op, Values{x});
  CHECK(graph.nodes[NodeId(0)].derivative && graph.nodes[NodeId(0)].location == 9);
  CHECK(!graph.nodes[NodeId(1)].derivative && graph.nodes[NodeId(1)].location == -1);
}

TEST("a type stays where it is while the graph grows") {
  Graph graph;
  const Value first = graph.add_argument(vector_type(3));
  const ValueType& type = graph.type(first);
  for (int i = 0; i < 1000; ++i) graph.add_argument(vector_type(5));
  CHECK(&graph.type(first) == &type);
  CHECK_EQ(type.shape[0], 3);
}

}  // namespace
}  // namespace samegrad::testing
