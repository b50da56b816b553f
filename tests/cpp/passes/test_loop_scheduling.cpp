// In which loop a node runs: as early as it can, or with its readers where less is stored that way.
#include "passes/loop_assignment.h"

#include "ops/attributes.h"
#include "ops/interpreter.h"

namespace samegrad::testing {
namespace {

constexpr std::int64_t kWide = 100;

struct LoopProgram {
  LoopProgram() : b(graph) {
    register_all_ops();
    graph.add_symbol({});
  }
  Value rows(std::int64_t width) {
    return graph.add_argument({DType::kFloat32, {kBatchDim, width}, {0, 1, 0}});
  }
  Value sum(Value x) { return b("reduce_sum", {x}, ReduceAttrs{.axes = {0, 1}}); }

  // By the value that the node makes.
  int stage(Value value) const {
    return assign_loops(graph, {}).stage[graph.nodes.id_of(*graph.producer(value))];
  }

  Graph graph;
  Builder b;
};

TEST("what no earlier loop needs waits for its reader") {
  LoopProgram p;
  const Value x = p.rows(kWide), w = p.rows(1);
  const Value hidden = p.b("exp", {x});
  const Value y = p.b("tanh", {hidden});
  const Value total = p.sum(w);
  const Value back = p.b("div", {p.b("mul", {y, hidden}), total});
  p.graph.outputs = {p.sum(back)};
  verify(p.graph);
  CHECK_EQ(p.stage(total), 1);
  CHECK_EQ(p.stage(back), 3);
  CHECK_EQ(p.stage(hidden), 3);
  CHECK_EQ(p.stage(y), 3);
}

TEST("a sum that only the result needs goes along, with what is made of it between loops") {
  LoopProgram p;
  const Value x = p.rows(kWide), w = p.rows(1);
  const Value y = p.b("tanh", {x});
  const Value loss = p.sum(y), total = p.sum(w);
  const Value mean = p.b("div", {loss, total});
  p.graph.outputs = {mean, p.sum(p.b("div", {y, total}))};
  verify(p.graph);
  CHECK_EQ(p.stage(y), 3);
  CHECK_EQ(p.stage(loss), 3);
  CHECK_EQ(p.stage(mean), 4);
}

TEST("what a sum of an earlier loop needs stays there") {
  LoopProgram p;
  const Value y = p.b("tanh", {p.rows(kWide)});
  const Value mean = p.sum(y);
  const Value away = p.b("sub", {y, mean});
  p.graph.outputs = {p.sum(away)};
  verify(p.graph);
  CHECK_EQ(p.stage(y), 1);
  CHECK_EQ(p.stage(mean), 1);
  CHECK_EQ(p.stage(away), 3);
}

TEST("a small result of rows that only the first loop has does not take them along") {
  LoopProgram p;
  const Value y = p.b("tanh", {p.rows(kWide)});
  const Value mean = p.sum(y);
  const Value norm = p.b("reduce_sum", {y}, ReduceAttrs{.axes = {1}});
  const Value relative = p.b("div", {norm, mean});
  p.graph.outputs = {p.b("reduce_sum", {relative}, ReduceAttrs{.axes = {0}})};
  verify(p.graph);
  CHECK_EQ(p.stage(norm), 1);
}

TEST("what whole nodes read stays early") {
  LoopProgram p;
  const Value y = p.b("tanh", {p.rows(kWide)}), total = p.sum(p.rows(1));
  const Value turned = p.b("transpose", {y}, TransposeAttrs{{1, 0}});
  p.graph.outputs = {p.sum(p.b("div", {y, total})), turned};
  verify(p.graph);
  CHECK_EQ(p.stage(turned), 2);
  CHECK_EQ(p.stage(y), 1);
}

}  // namespace
}  // namespace samegrad::testing
