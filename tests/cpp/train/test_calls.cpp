// Calls of functions under tapes: the order of their sums, and runs of compiled steps.
#include "check.h"
#include "ir/symbols.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "passes/rewrite.h"
#include "tracing.h"
#include "train/compiled_function.h"
#include "train/control.h"

using namespace samegrad;

namespace {

// 1e8 v - 1e8 v + v in float32: the middle two cancel if they are summed by themselves.
float gradient_of_three_uses(bool call) {
  register_all_ops();
  const auto trace = std::make_shared<FunctionTrace>(host, 1);
  const Scope scope(with_trace(trace));
  const auto v =
      std::make_shared<Variable>("v", std::vector<Array>{Array::number(DType::kFloat32, 1)});
  Tape tape(host, false);
  tape.start();
  const Tensor x = trace->tensor(trace->read(v));
  const Tensor large = trace->tensor(trace->number(DType::kFloat32, 1e8));
  const Tensor small = trace->tensor(trace->number(DType::kFloat32, -1e8));
  if (call) trace->begin_call();
  const Tensor inside = op("add", {op("mul", {x, large}), op("mul", {x, small})});
  if (call) trace->end_call();
  const Tensor y = op("add", {inside, x});
  tape.stop();
  const Tensor gradient = *tape.gradient({&y}, {}, {{nullptr, v}})[0];
  CompiledFunction step(trace->finish({gradient.value}), PlanOptions());
  return *step.run({}, false)[0][0].data<float>();
}

}  // namespace

TEST("the gradient of a call is summed inside, then added to the uses outside") {
  CHECK_EQ(gradient_of_three_uses(true), 1.0f);
  CHECK_EQ(gradient_of_three_uses(false), 0.0f);
}

TEST("the nodes of a call's derivative are a call, and empty calls are not") {
  register_all_ops();
  const auto trace = std::make_shared<FunctionTrace>(host, 1);
  const Scope scope(with_trace(trace));
  Tape tape(host, false);
  tape.start();
  const Tensor x = make_tensor(Array::scalar(2.0));
  tape.watch(x);
  trace->begin_call();
  trace->end_call();
  CHECK(trace->program().calls.empty());
  trace->begin_call();
  const Tensor y = op("mul", {x, x});
  trace->end_call();
  tape.stop();
  const NodeId before = trace->program().nodes.next_id();
  (void)tape.gradient({&y}, {}, {{&x}});
  CHECK_EQ(trace->program().calls.size(), 2u);
  CHECK(trace->program().calls[1].begin >= before);
  CHECK(trace->program().calls[1].end > trace->program().calls[1].begin);
}

TEST("programs that differ in their calls are not the same") {
  register_all_ops();
  const auto make = [](bool call) {
    const auto trace = std::make_shared<FunctionTrace>(host, 1);
    const Scope scope(with_trace(trace));
    const Tensor x = trace->tensor(trace->argument({Array::scalar(2.0)}, {}));
    if (call) trace->begin_call();
    const Tensor y = op("mul", {x, x});
    if (call) trace->end_call();
    return trace->finish({y.value}).graph;
  };
  std::vector<ConstantId> different;
  CHECK(same_program(make(true), make(true), different));
  CHECK(!same_program(make(true), make(false), different));
}

TEST("a run under an eager tape is differentiated by a program that reads what the run read") {
  register_all_ops();
  const auto v = std::make_shared<Variable>("v", std::vector<Array>{Array::scalar(3.0)});
  const auto graph = std::make_shared<FunctionTrace>(host, 1);
  std::optional<Scope> scope(with_trace(graph));
  const Tensor inside = graph->tensor(graph->argument({Array::scalar(5.0)}, {}));
  const Tensor old = graph->tensor(graph->read(v));
  const Tensor product = op("mul", {op("mul", {old, old}), inside});
  graph->write(v, op("add", {old, inside}).value);
  scope.reset();
  CompiledFunction step(graph->finish({product.value}), PlanOptions());

  Tape tape(host, true);
  tape.start();
  const auto eager = current_eager_trace();
  const Tensor x = make_tensor(Array::scalar(5.0));
  tape.watch(x);
  const EagerTrace::RunOperands operands = eager->hold(step, {{x}}, {});
  const CompiledFunction::RunResult result = step.run_numbered({{x.array}}, false);
  const Tensor y = eager->record(step, operands, result.outputs, result.number)[0][0];
  tape.stop();
  CHECK_EQ(*v->components()[0].data<double>(), 8.0);
  CHECK_EQ(*y.array.data<double>(), 45.0);
  const auto found = tape.gradient({&y}, {}, {{nullptr, v}, {&x}});
  CHECK_EQ(*found[0]->array.data<double>(), 30.0);
  CHECK_EQ(*found[1]->array.data<double>(), 9.0);
  CHECK_EQ(*v->components()[0].data<double>(), 8.0);  // no second write
}

TEST("a graph without effects keeps its values, calls and order") {
  register_all_ops();
  const auto trace = std::make_shared<FunctionTrace>(host, 1);
  const Scope scope(with_trace(trace));
  const auto v = std::make_shared<Variable>("v", std::vector<Array>{Array::scalar(3.0)});
  const Tensor x = trace->tensor(trace->argument({Array::scalar(2.0)}, {}));
  op("print", {x}, PrintAttrs{.text = std::string("x"), .edge = 3});
  trace->write(v, op("add", {x, x}).value);
  trace->begin_call();
  const Tensor y = op("mul", {x, x});
  op("print", {y}, PrintAttrs{.text = std::string("y"), .edge = 3});
  trace->end_call();
  const Graph pure = without_effects(trace->finish({y.value}).graph);
  CHECK_EQ(pure.nodes.size(), 1u);
  CHECK(pure.writes.empty());
  CHECK_EQ(pure.calls[0].begin, NodeId(0));
  CHECK_EQ(pure.calls[0].end, NodeId(1));
}

TEST("symbols are found again by their rules, and inputs only where they are bound") {
  Symbol input, slice;
  slice.kind = Symbol::Kind::kSlice;
  slice.parts = {0};
  slice.begin = 1;
  const std::vector<Symbol> from = {input, slice};
  std::vector<Symbol> to = {input, input};
  Symbol known = slice;
  known.parts = {1};
  to.push_back(known);
  SymbolMap bound(from, to);
  bound.bind(0, 1);
  CHECK_EQ(bound(1), 2);
  SymbolMap unbound(from, to);
  CHECK_EQ(unbound(1), 4);
  CHECK_EQ(to[4].parts[0], 3);
}
