// Values of a program that is still being traced.
#include "base/error.h"
#include "base/print_buffer.h"
#include "check.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "tracing.h"
#include "train/compiled_function.h"
#include "train/control.h"
#include "train/random_state.h"

using namespace samegrad;

namespace {

double number(const Array& array) {
  CHECK_EQ(array.size(), 1);
  return *array.data<double>();
}

// A trace of two replicas that is called with 1 on one of them and 3 on the other.
struct Traced {
  Traced() {
    register_all_ops();
    const Array one = Array::scalar(1.0), three = Array::scalar(3.0);
    x = trace->tensor(trace->argument({one, three}, {}));
    trace->let_evaluate({{one, three}});
  }
  std::shared_ptr<FunctionTrace> trace = std::make_shared<FunctionTrace>(host, 2);
  Scope scope{with_trace(trace)};
  Tensor x;
};

}  // namespace

TEST("a value that is looked at is there for each replica, or once if it is equal on all") {
  Traced t;
  const Tensor square = op("mul", {t.x, t.x}), sum = op("all_reduce", {square});
  CHECK(t.trace->evaluates());
  const PerReplica<Array> squares = t.trace->evaluate(square.value);
  CHECK_EQ(squares.size(), 2u);
  CHECK_EQ(number(squares[0]) + 10 * number(squares[1]), 91.0);
  CHECK_EQ(t.trace->evaluate(sum.value).size(), 1u);
  CHECK_EQ(number(t.trace->evaluate(sum.value)[0]), 10.0);
  const Tensor more = op("add", {sum, t.x});  // made of values that are known by now
  CHECK_EQ(number(t.trace->evaluate(more.value)[1]), 13.0);
}

TEST("looking leaves the program, the variables and the random numbers alone") {
  Traced t;
  const auto v = std::make_shared<Variable>("v", std::vector<Array>{Array::scalar(5.0)});
  const Tensor sum = op("all_reduce", {t.x}), zero = make_tensor(Array::scalar<std::int64_t>(0));
  const Tensor old = t.trace->tensor(t.trace->read(v));
  t.trace->write(v, op("add", {old, sum}).value);
  const Tensor fresh = t.trace->tensor(t.trace->read(v));
  const Tensor drawn =
      op("random_normal", {zero},
         RandomAttrs({.dtype = DType::kFloat64, .ordinal = t.trace->draws().ordinal++}));
  const std::string program = to_string(t.trace->program());
  const std::uint64_t step_number = random_state().step;
  const double seen = number(t.trace->evaluate(drawn.value)[0]);
  CHECK_EQ(number(t.trace->evaluate(fresh.value)[0]), 9.0);
  CHECK_EQ(number(v->components()[0]), 5.0);
  CHECK_EQ(random_state().step, step_number);
  CHECK_EQ(to_string(t.trace->program()), program);
  CompiledFunction step(t.trace->finish({drawn.value}), PlanOptions());
  const auto out = step.run({{Array::scalar(1.0), Array::scalar(3.0)}}, false);
  CHECK_EQ(number(out[0][0]), seen);
  CHECK_EQ(number(v->components()[0]), 9.0);
  CHECK_EQ(random_state().step, step_number + 1);
  CHECK(!t.trace->evaluates());
}

TEST("what the value needs is not printed a second time") {
  Traced t;
  (void)op("print", {t.x}, PrintAttrs{.text = std::string(1, '\0'), .edge = std::int64_t{3}});
  const Tensor yes = make_tensor(Array::scalar(true));
  const TensorFunction prints = [&](const std::vector<Tensor>&) {
    (void)op("print", {t.x}, PrintAttrs{.text = std::string(1, '\0'), .edge = std::int64_t{3}});
    return std::vector{op("add", {t.x, t.x})};
  };
  const Tensor doubled = traced_cond(yes, prints, prints)[0];
  CHECK_EQ(number(t.trace->evaluate(doubled.value)[1]), 6.0);
  CompiledFunction step(t.trace->finish({doubled.value}), PlanOptions());
  PrintBuffer messages;
  (void)step.run({{Array::scalar(1.0), Array::scalar(3.0)}}, false, &messages);
  CHECK_EQ(messages.take().size(), 4u);  // by each replica
}

TEST("while a branch is traced there is nothing to look at, except for debuggers") {
  Traced t;
  const Tensor yes = make_tensor(Array::scalar(true));
  const TensorFunction looks = [&](const std::vector<Tensor>&) {
    const Tensor inside = op("add", {t.x, t.x});
    CHECK(inside.trace->evaluates());
    CHECK_THROWS(inside.trace->evaluate(inside.value, true), Error);
    CHECK_THROWS(t.trace->evaluate(t.x.value), Error);
    CHECK_EQ(t.trace->evaluate(t.x.value, true).size(), 2u);
    return std::vector{inside};
  };
  (void)traced_cond(yes, looks, looks);
}

TEST("a host that checks numbers finds the first one that is not finite, and others do not") {
  register_all_ops();
  Host checking;
  checking.check_numerics = true;
  const OpDef& log = OpRegistry::instance().get("log");
  const Tensor zero = make_tensor(Array::scalar(0.0));
  CHECK_THROWS(apply(checking, log, std::vector{zero}, {}), Error);
  CHECK(number(apply(host, log, std::vector{zero}, {})[0].array) < 0);
}
