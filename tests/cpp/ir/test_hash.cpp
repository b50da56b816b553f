// What decides whether two programs are one.
#include <functional>

#include "check.h"
#include "fake_ops.h"

namespace samegrad::testing {
namespace {

const OpDef& configured() {
  static const OpDef op = row_with_attributes();
  return op;
}

Graph program(const std::shared_ptr<FakeCell>& cell, double rate = 0.5) {
  Graph graph;
  graph.add_symbol({});
  Builder b(graph);
  graph.add_argument(batched_type(3), true);
  const Value w = graph.add_variable(cell, vector_type(3), false);
  graph.add_constant(Array::number(DType::kFloat32, 2));
  const Value v = b.apply(configured(), Values{w}, {{"size", std::int64_t(1)}, {"rate", rate}})[0];
  graph.outputs = {v};
  graph.writes.push_back({cell, v});
  return graph;
}

TEST("equal programs have equal hashes") {
  const auto cell = std::make_shared<FakeCell>("w");
  CHECK(same_program(program(cell), program(cell)));
  CHECK_EQ(hash_of(program(cell)), hash_of(program(cell)));
}

TEST("programs that compute something else are not the same") {
  const auto cell = std::make_shared<FakeCell>("w");
  const Graph one = program(cell);
  const std::function<void(Graph&)> changes[] = {
      [](Graph& g) { g.replicas = 2; },
      [](Graph& g) { g.outputs.clear(); },
      [](Graph& g) { g.writes.clear(); },
      [](Graph& g) { g.nodes[0].inputs[0] = 0; },
      [](Graph& g) { g.nodes[0].attrs.set("size", std::int64_t(2)); },
      [](Graph& g) { g.values[0].varying = false; },
      [](Graph& g) { g.values[1].type.dtype = DType::kFloat64; },
      [](Graph& g) { g.constants[0] = Array::number(DType::kFloat32, 3); },
      [](Graph& g) { g.symbols[0].fixed = true; },
      [](Graph& g) { g.variables[0].cell = std::make_shared<FakeCell>("w"); },
  };
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    Graph other = program(cell);
    changes[i](other);
    CHECK(!same_program(one, other), i);
  }
}

TEST("numbers that look alike when printed are not the same attribute") {
  const auto cell = std::make_shared<FakeCell>("w");
  CHECK(!same_program(program(cell, 1000000.25), program(cell, 1000000.0)));
}

TEST("what was counted while tracing decides nothing unless the program looked at it") {
  const auto cell = std::make_shared<FakeCell>("w");
  Graph seven = program(cell), nine = program(cell);
  seven.symbols[0].traced_count = 7;
  nine.symbols[0].traced_count = 9;
  CHECK(same_program(seven, nine));
  seven.symbols[0].fixed = nine.symbols[0].fixed = true;
  CHECK(!same_program(seven, nine));
}

TEST("a graph prints one line for each value and node") {
  const std::string text = to_string(program(std::make_shared<FakeCell>("w")));
  for (const char* part : {"%0 = argument 0 : float32 (?, 3) examples on axis 0, per replica\n",
                           "%1 = variable w : float32 (3,)\n", "%2 = constant : float32 ()\n",
                           "%3 = configured(%1, size=1, rate=0.5, name='none') : float32 (3,)\n",
                           "return %3\n", "w := %3"}) {
    CHECK(text.find(part) != std::string::npos, part, " is not in\n", text);
  }
}

}  // namespace
}  // namespace samegrad::testing
