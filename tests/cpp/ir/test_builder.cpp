// What the builder makes of rows, and what it refuses.
#include "base/error.h"
#include "check.h"
#include "fake_ops.h"

namespace samegrad::testing {
namespace {

std::string message_of(const OpDef& op, std::size_t operands, Attrs attrs = {}) {
  Graph graph;
  Builder b(graph);
  const Values inputs(operands, graph.add_argument(vector_type(3)));
  try {
    b.apply(op, inputs, std::move(attrs));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST("a row refuses other numbers of operands") {
  const OpDef pair = fake_row("pair", 2);
  CHECK_EQ(message_of(pair, 2), "");
  CHECK_EQ(message_of(pair, 1), "[pair] takes 2 operands: got 1.");
  OpDef any = fake_row("any", 1);
  any.max_arity = -1;
  CHECK_EQ(message_of(any, 40), "");
  CHECK_EQ(message_of(any, 0), "[any] takes 1 or more operands: got 0.");
}

TEST("attributes are filled in, in the order of the row") {
  Graph graph;
  Builder b(graph);
  const OpDef op = row_with_attributes();
  const Value x = graph.add_argument(vector_type(3));
  b.apply(op, Values{x}, {{"rate", std::int64_t(2)}, {"size", std::int64_t(7)}});
  const auto& items = graph.nodes[0].attrs.items();
  CHECK_EQ(items.size(), std::size_t(3));
  CHECK(items[0].first == "size" && items[1].first == "rate" && items[2].first == "name");
  CHECK_EQ(graph.nodes[0].attrs.number("rate").as<double>(), 2.0);
  CHECK_EQ(graph.nodes[0].attrs.string("name"), "none");
}

TEST("unknown, missing and wrongly typed attributes are named") {
  const OpDef op = row_with_attributes();
  CHECK_EQ(message_of(op, 1), "[configured] attribute 'size' is required.");
  CHECK_EQ(message_of(op, 1, {{"size", 2.5}}),
           "[configured] attribute 'size' must be an int: got 2.5.");
  CHECK_EQ(message_of(op, 1, {{"size", std::int64_t(1)}, {"sise", std::int64_t(1)}}),
           "[configured] there is no attribute 'sise'.");
}

TEST("what differs between replicas follows from operands and traits") {
  const struct {
    std::uint32_t traits;
    bool operand, result;
  } cases[] = {{0, false, false},           {0, true, true},
               {kCollective, true, false},  {kGlobalFact, true, false},
               {kReplicaFact, false, true}, {kReplicaFact, true, true}};
  for (const auto& c : cases) {
    Graph graph;
    Builder b(graph);
    const OpDef op = fake_row("row", 1, c.traits);
    const Value x =
        graph.add_argument(vector_type(3), c.operand ? Placement::kOwn : Placement::kReplicated);
    CHECK_EQ(graph.varying(b.apply(op, Values{x})[0]), c.result);
  }
}

TEST("derivatives carry the line of what they are derivatives of") {
  Graph graph;
  Builder b(graph);
  const OpDef op = fake_row("row", 1);
  const Value x = graph.add_argument(vector_type(3));
  {
    const Builder::Deriving outer(b, 4);
    const Builder::Deriving inner(b, 9);
    b.apply(op, Values{x});
  }
  b.apply(op, Values{x});
  CHECK(graph.nodes[0].derivative && graph.nodes[0].location == 9);
  CHECK(!graph.nodes[1].derivative && graph.nodes[1].location == -1);
}

}  // namespace
}  // namespace samegrad::testing
