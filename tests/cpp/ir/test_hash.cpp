// What decides whether two programs are one.
#include <functional>

#include "check.h"
#include "fake_ops.h"

namespace samegrad::testing {
namespace {

Graph program(double rate = 0.5) {
  Graph graph;
  graph.add_symbol({});
  Builder b(graph);
  graph.add_argument(batched_type(3), Placement::kSharded);
  const Value w = add_weight(graph, 3);
  graph.add_constant(Array::number(DType::kFloat32, 2));
  const Value v = b.apply(configured(), Values{w}, FakeAttrs{.size = 1, .rate = rate})[0];
  graph.outputs = {v};
  graph.writes.push_back({SlotId(0), v});
  return graph;
}

// The same, numbers included.
bool are_same(const Graph& a, const Graph& b) {
  std::vector<ConstantId> different;
  return same_program(a, b, different) && different.empty();
}

TEST("equal programs have equal hashes") {
  CHECK(are_same(program(), program()));
  CHECK_EQ(hash_of(program()), hash_of(program()));
}

TEST("programs that compute something else are not the same") {
  const Graph one = program();
  const std::function<void(Graph&)> changes[] = {
      [](Graph& g) { g.replicas = 2; },
      [](Graph& g) { g.outputs.clear(); },
      [](Graph& g) { g.writes.clear(); },
      [](Graph& g) { g.nodes[NodeId(0)].inputs[0] = Value(0); },
      [](Graph& g) { g.nodes[NodeId(0)].attrs = FakeAttrs{.size = 2}; },
      [](Graph& g) { g.values[Value(0)].placement = Placement::kReplicated; },
      [](Graph& g) { g.values[Value(1)].type.dtype = DType::kFloat64; },
      [](Graph& g) { g.constants[ConstantId(0)] = Array::number(DType::kFloat32, 3); },
      [](Graph& g) { g.symbols[0].fixed = true; },
      [](Graph& g) { g.variables[SlotId(0)].components = 2; },
  };
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    Graph other = program();
    changes[i](other);
    CHECK(!are_same(one, other), i);
  }
}

TEST("which variables a program is about decides nothing") {
  Graph other = program();
  other.variables[SlotId(0)].name = "bias";
  CHECK(are_same(program(), other));
  CHECK_EQ(hash_of(program()), hash_of(other));
}

TEST("programs that differ in a number tell which one it is") {
  Graph other = program();
  other.constants[ConstantId(0)] = Array::number(DType::kFloat32, 3);
  std::vector<ConstantId> different;
  CHECK(same_program(program(), other, different));
  CHECK(different == std::vector{ConstantId(0)});
  CHECK_EQ(hash_of(program()), hash_of(other));
}

TEST("regions are compared by what they compute") {
  const auto running = [](double rate) {
    Graph graph = program();
    graph.nodes[NodeId(0)].regions = {std::make_shared<const Graph>(program(rate))};
    return graph;
  };
  CHECK(are_same(running(0.5), running(0.5)));
  CHECK_EQ(hash_of(running(0.5)), hash_of(running(0.5)));
  CHECK(!are_same(running(0.5), running(0.25)));
  CHECK(hash_of(running(0.5)) != hash_of(running(0.25)));
  CHECK(!are_same(running(0.5), program()));
}

TEST("numbers that look alike when printed are not the same attribute") {
  CHECK(!are_same(program(1000000.25), program(1000000.0)));
}

TEST("what was counted while tracing decides nothing unless the program looked at it") {
  Graph seven = program(), nine = program();
  seven.symbols[0].traced_count = 7;
  nine.symbols[0].traced_count = 9;
  CHECK(are_same(seven, nine));
  seven.symbols[0].fixed = nine.symbols[0].fixed = true;
  CHECK(!are_same(seven, nine));
}

TEST("a graph prints one line for each value and node") {
  const std::string text = to_string(program());
  for (const char* part : {"%0 = argument 0 : float32 (?, 3) examples on axis 0, rows\n",
                           "%1 = variable weight : float32 (3,)\n", "%2 = constant : float32 ()\n",
                           "%3 = configured(%1, size=1, rate=0.5, name='none') : float32 (3,)\n",
                           "return %3\n", "weight := %3"}) {
    CHECK(text.find(part) != std::string::npos, part, " is not in\n", text);
  }
}

}  // namespace
}  // namespace samegrad::testing
