// A plan in which anything is wrong is refused, by the name of the rule that it breaks.
#include <functional>

#include "base/error.h"
#include "check.h"
#include "error_message.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "plan/verify.h"
#include "programs.h"

using namespace samegrad;

namespace {

// Two variables of five numbers, v0 and v1: a = v0 + v0 is written to v0 in place, b = reverse(v1)
// and c = reverse(b) are in the arena, and d = c + v1 is an output.
struct StepPlan {
  StepPlan() {
    a = fake.sum({fake.old(0), fake.old(0)});
    b = fake.apply(reverse_op(), {fake.old(1)});
    c = fake.apply(reverse_op(), {b});
    d = fake.sum({c, fake.old(1)});
    fake.write(0, a);
    fake.output(d);
    PlanOptions options;
    options.passes = PassOptions::none();
    options.join_small_nodes = false;
    plan = compile(fake.graph(), options);
  }
  NodeId node(Value v) const { return plan.graph.values[v].node(); }
  StepId step(Value v) const {
    for (StepId s : plan.steps.ids()) {
      if (std::ranges::count(plan.steps[s].nodes(), node(v))) return s;
    }
    return {};
  }
  // Does the work of join_small_nodes.
  void join(Value to, Value from) {
    const StepId gone = step(from);
    plan.steps[step(to)] = SideBySideStep{{{node(to), node(from)}}};
    IndexedVector<StepId, PlanStep> steps;
    for (StepId s : plan.steps.ids()) {
      if (s != gone) steps.push_back(plan.steps[s]);
    }
    plan.steps = steps;
  }
  void swap(StepId x, StepId y) { std::swap(plan.steps[x], plan.steps[y]); }

  Fake fake{2};
  Value a, b, c, d;
  PlanDraft plan;
};

// A loop over examples: y = relu(x), z = y * y, and the sum of z.
struct LoopPlan {
  LoopPlan() {
    register_all_ops();
    const int symbol = graph.add_symbol({});
    Builder build(graph);
    const ValueType type{DType::kFloat32, {kBatchDim, 8}, {0, 1, symbol}};
    const Value x = graph.add_argument(type, Placement::kSharded);
    y = build("exp", {x});
    z = build("softmax", {y});
    sum = build("reduce_sum", {z}, ReduceAttrs{.axes = {0, 1}});
    graph.outputs = {sum};
    PlanOptions options;
    options.passes.fuse_elementwise = false;
    plan = compile(graph, options);
  }

  LoopStep& loop() {
    for (PlanStep& step : plan.steps) {
      if (auto* loop = step.get_if<LoopStep>()) return *loop;
    }
    fail(ErrorKind::kValue, "test", "the plan has no loop.");
  }

  Graph graph;
  Value y, z, sum;
  PlanDraft plan;
};

template <class Of>
std::string said_of(const std::function<void(Of&)>& change,
                    PlanStage stage = PlanStage::kLiveRanges) {
  Of sample;
  change(sample);
  return testing::message_of([&] { verify(sample.plan, stage); });
}

template <class Of>
void check_rule(const char* rule, const std::function<void(Of&)>& change) {
  const std::string said = said_of(change);
  CHECK(check::has(said, rule), rule, " | ", said);
  const std::vector<std::string> rules = plan_rules();
  CHECK(std::ranges::count(rules, rule) == 1, rule);
}

}  // namespace

TEST("verify accepts what compile makes") {
  CHECK_EQ(said_of<StepPlan>([](StepPlan&) {}), "");
  CHECK_EQ(said_of<LoopPlan>([](LoopPlan&) {}), "");
  LoopPlan sample;
  CHECK_EQ(steps_of<LoopStep>(sample.plan).size(), 1u);
}

TEST("verify finds a node in two steps, and one in none") {
  const auto rule = "each node is in exactly one step";
  check_rule<StepPlan>(rule,
                       [](StepPlan& s) { s.plan.steps.push_back(s.plan.steps[s.step(s.d)]); });
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.plan.steps[s.step(s.b)].base().nodes.clear(); });
}

TEST("verify finds a read that comes before its write") {
  const auto rule = "each read has an earlier write";
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.swap(s.step(s.b), s.step(s.c)); });
  check_rule<StepPlan>(rule, [](StepPlan& s) {
    s.join(s.c, s.d);  // which reads it
  });
}

TEST("verify finds a root that does not have the bytes") {
  check_rule<StepPlan>("a view has the root of its operand",
                       [](StepPlan& s) { s.plan.root[s.c] = s.b; });
}

TEST("verify finds a value with the storage of another kind") {
  const auto rule = "storage is that of the root";
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.plan.storage[s.c] = Storage::kExternal; });
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.plan.storage[s.c] = Storage::kReplica; });
}

TEST("verify finds a value of a tile that is read outside its loop") {
  const auto rule = "a value without a buffer is read where it is made";
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.plan.storage[s.b] = Storage::kTile; });
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.plan.storage[s.d] = Storage::kUnused; });
}

TEST("verify finds an operand that nothing prepares") {
  const auto rule = "each prepared operand has a slot";
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.plan.prepacked_slots = 1; });
  check_rule<StepPlan>(rule, [](StepPlan& s) {
    s.plan.steps[s.step(s.c)].base().prepack.push_back({s.node(s.c), s.b, 0});
  });
}

TEST("verify finds a value of an inner loop that is used outside") {
  const auto rule = "a value of an inner loop is used in that loop alone";
  check_rule<LoopPlan>(rule, [](LoopPlan& s) { s.plan.inner_value[s.y] = true; });
  check_rule<LoopPlan>(rule, [](LoopPlan& s) { s.loop().inner = {{0, 9}}; });
  check_rule<LoopPlan>(rule, [](LoopPlan& s) {
    s.loop().inner = {{0, 1}, {1, 2}};
    s.plan.inner_value[s.y] = true;
  });
}

TEST("verify finds a variable that is written before its last reader") {
  const auto rule = "an in-place writer comes last among the readers";
  CHECK(StepPlan().plan.stores[0] == Aliasing::kInPlace);
  check_rule<StepPlan>(rule, [](StepPlan& s) {
    s.plan.graph.nodes[s.node(s.d)].inputs[1] = s.fake.old(0);
    s.swap(s.step(s.a), s.step(s.d));
  });
  check_rule<StepPlan>(rule, [](StepPlan& s) {
    s.plan.graph.nodes[s.node(s.d)].inputs[1] = s.fake.old(0);
    s.join(s.d, s.a);
  });
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.plan.graph.outputs.push_back(s.fake.old(0)); });
}

TEST("verify finds a copy over a value that another variable gets") {
  check_rule<StepPlan>("no write is copied over a value that another one copies", [](StepPlan& s) {
    s.plan.stores[0] = Aliasing::kCopy;
    s.plan.graph.writes.push_back({SlotId(1), s.fake.old(0)});
    s.plan.stores.push_back(Aliasing::kCopy);
  });
}

TEST("verify finds a step that may fail after the first store") {
  check_rule<StepPlan>("nothing may fail after the first store", [](StepPlan& s) {
    s.swap(s.step(s.a), s.step(s.d));
    s.swap(s.step(s.a), s.step(s.c));
  });
}

TEST("verify finds sums that are awaited after their reader") {
  check_rule<StepPlan>("sums are complete before they are read", [](StepPlan& s) {
    const StepId step = s.step(s.b);
    s.plan.steps[step] = AllReduceStep{{{s.node(s.b)}}};
    s.plan.collective_done[step] = s.plan.steps.next_id();
  });
}

TEST("verify finds a live range that ends before the last use") {
  const auto rule = "live ranges cover uses";
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.plan.live_ranges[s.b].last = s.step(s.b); });
  check_rule<StepPlan>(rule, [](StepPlan& s) { s.plan.live_ranges[s.c].home = kNoValue; });
}

TEST("verify finds two live values in one memory") {
  check_rule<StepPlan>("no two live values share memory", [](StepPlan& s) {
    LiveRange &b = s.plan.live_ranges[s.b], &c = s.plan.live_ranges[s.c];
    b.last = c.last;
    c.home = s.b;
  });
}

TEST("rules about later tables are not checked before these are filled") {
  const std::string said = said_of<StepPlan>(
      [](StepPlan& s) { s.plan.live_ranges[s.b].last = s.step(s.b); }, PlanStage::kCollectiveDone);
  CHECK_EQ(said, "");
}

TEST("verify finds intervals that overlap in memory") {
  const std::vector<Interval> intervals{{64, 0, 2}, {64, 2, 3}};
  verify(Packing{{0, 64}, 128}, intervals);
  CHECK_THROWS(verify(Packing{{0, 32}, 128}, intervals), Error);
  CHECK_THROWS(verify(Packing{{0, 64}, 100}, intervals), Error);
  verify(Packing{{0, 0}, 64}, std::vector<Interval>{{64, 0, 1}, {64, 2, 3}});
}

TEST("verify finds a node that reads a tile that another value has overwritten") {
  const Plan plan(LoopPlan().plan);
  const LoopStep& loop = *steps_of<LoopStep>(plan)[0];
  LoopLayout layout = lay_out(plan, loop);
  verify(plan, loop, layout);
  for (LoopNode& code : layout.nodes) {
    for (Operand& operand : code.operands) {
      if (operand.tile_offset > 0) operand.tile_offset = 0;
    }
  }
  CHECK_THROWS(verify(plan, loop, layout), Error);
}
