// How writes reach their variables: in place where that is legal, and only there.
#include "check.h"
#include "programs.h"

using namespace samegrad;

namespace {

void check_stores(const Fake& fake, const std::vector<Aliasing>& expected) {
  const Plan plan = fake.plan();
  CHECK_EQ(plan.stores.size(), expected.size());
  for (std::size_t w = 0; w < expected.size(); ++w) {
    CHECK(plan.stores[w] == expected[w], "write ", w, ": ", int(plan.stores[w]));
  }
}

}  // namespace

TEST("an update that reads its variable alone is stored in place") {
  Fake f(1);
  f.write(0, f.sum({f.old(0), f.old(0)}));
  check_stores(f, {Aliasing::kInPlace});
  const float* before = f.cell(0).data();
  f.run();
  CHECK(f.cell(0).data() == before);
  CHECK_EQ(before[4], 8.f);
}

TEST("nothing is stored in place where the plan is told so") {
  Fake f(1);
  f.write(0, f.sum({f.old(0), f.old(0)}));
  CHECK(f.plan(false).stores[0] == Aliasing::kCopy);
  f.run(false);
  CHECK_EQ(f.cell(0).data()[4], 8.f);
}

TEST("an old value that another variable gets is not overwritten") {
  for (const bool target_first : {true, false}) {
    Fake f(2);
    const Value updated = f.sum({f.old(0), f.old(0)});
    if (target_first) f.write(1, f.old(0));
    f.write(0, updated);
    if (!target_first) f.write(1, f.old(0));
    const Plan plan = f.plan();
    CHECK(plan.stores[target_first ? 1 : 0] == Aliasing::kReplace);
    CHECK(plan.stores[target_first ? 0 : 1] == Aliasing::kCopy);
    f.run();
    CHECK_EQ(f.cell(0).data()[1], 2.f);
    CHECK_EQ(f.cell(1).data()[1], 1.f);
  }
}

TEST("variables exchange their values in a ring") {
  Fake f(3);
  for (int v = 0; v < 3; ++v) f.write(v, f.apply(alias_op(), {f.old((v + 1) % 3)}));
  check_stores(f, {Aliasing::kReplace, Aliasing::kReplace, Aliasing::kReplace});
  f.run();
  for (int v = 0; v < 3; ++v) CHECK_EQ(f.cell(v).data()[0], 10.f * float((v + 1) % 3));
}

TEST("a variable that gets what it has is left alone") {
  Fake f(1);
  f.write(0, f.apply(alias_op(), {f.old(0)}));
  check_stores(f, {Aliasing::kNothing});
  const float* before = f.cell(0).data();
  const auto held = f.cell(0).components();
  f.run();
  CHECK(f.cell(0).data() == before);
}

TEST("an old value that is an output, or read later, is not overwritten") {
  Fake output(1);
  output.write(0, output.sum({output.old(0), output.old(0)}));
  output.output(output.apply(alias_op(), {output.old(0)}));
  check_stores(output, {Aliasing::kCopy});
  CHECK_EQ(output.run()[0][0].data<float>()[3], 3.f);
  CHECK_EQ(output.cell(0).data()[3], 6.f);

  Fake later(2);
  later.write(0, later.sum({later.old(0), later.old(0)}));
  later.write(1, later.sum({later.old(1), later.old(0)}));
  check_stores(later, {Aliasing::kCopy, Aliasing::kInPlace});
  later.run();
  CHECK_EQ(later.cell(1).data()[2], 14.f);

  Fake earlier(2);
  earlier.write(1, earlier.sum({earlier.old(1), earlier.old(0)}));
  earlier.write(0, earlier.sum({earlier.old(0), earlier.old(0)}));
  check_stores(earlier, {Aliasing::kInPlace, Aliasing::kInPlace});
}

TEST("a new value with two homes is copied into both") {
  Fake f(2);
  const Value sum = f.sum({f.old(0), f.old(1)});
  f.write(0, sum);
  f.write(1, f.apply(alias_op(), {sum}));
  check_stores(f, {Aliasing::kCopy, Aliasing::kCopy});
  f.run();
  CHECK_EQ(f.cell(0).data()[1], 12.f);
  CHECK_EQ(f.cell(1).data()[1], 12.f);
}

TEST("through an alias a value is stored in place as well") {
  Fake f(1);
  f.write(0, f.apply(alias_op(), {f.sum({f.apply(alias_op(), {f.old(0)}), f.old(0)})}));
  check_stores(f, {Aliasing::kInPlace});
  f.run();
  CHECK_EQ(f.cell(0).data()[2], 4.f);
}

TEST("what does not go element by element, or is read by a step that may raise, is copied") {
  Fake reversed(1);
  reversed.write(0, reversed.apply(reverse_op(), {reversed.old(0)}));
  check_stores(reversed, {Aliasing::kCopy});
  reversed.run();
  CHECK_EQ(reversed.cell(0).data()[0], 4.f);

  Fake early(2);
  const Value sum = early.sum({early.old(0), early.old(0)});
  early.write(0, sum);
  early.write(1, early.apply(reverse_op(), {sum}));
  check_stores(early, {Aliasing::kCopy, Aliasing::kCopy});
}

TEST("updates that cannot fail come after all that may, so they are stored in place") {
  Fake f(3);
  const Value first = f.sum({f.old(0), f.old(0)});
  f.write(0, first);
  f.write(1, f.sum({f.old(1), first}));
  f.write(2, f.apply(reverse_op(), {f.old(2)}));
  check_stores(f, {Aliasing::kInPlace, Aliasing::kInPlace, Aliasing::kCopy});
  const Plan plan = f.plan();
  CHECK_EQ(plan.steps.size(), 3u);
  CHECK_EQ(plan.steps[StepId(0)].nodes()[0], NodeId(2));
  CHECK_EQ(plan.steps[StepId(1)].nodes()[0], NodeId(0));
  f.run();
  CHECK_EQ(f.cell(0).data()[1], 2.f);
  CHECK_EQ(f.cell(1).data()[1], 13.f);
  CHECK_EQ(f.cell(2).data()[0], 24.f);
}

namespace {

// As reverse_op, and it is known what memory it takes: none.
const OpDef& known_reverse_op() {
  static const OpDef op = [] {
    OpDef row = reverse_op();
    row.name = "fake_known_reverse";
    row.scratch_bytes = [](const CostArgs&) { return std::size_t(0); };
    return row;
  }();
  return op;
}

}  // namespace

TEST("what reads a new value and cannot fail comes after the update, which is stored in place") {
  Fake f(2);
  const Value first = f.sum({f.old(0), f.old(0)});
  f.write(0, first);
  f.output(f.apply(known_reverse_op(), {first}));
  f.output(f.sum({f.apply(known_reverse_op(), {first}), first}));
  f.write(1, f.apply(reverse_op(), {f.old(1)}));
  check_stores(f, {Aliasing::kInPlace, Aliasing::kCopy});
  const float* before = f.cell(0).data();
  const auto outputs = f.run();
  CHECK(f.cell(0).data() == before);
  CHECK_EQ(outputs[0][0].data<float>()[0], 8.f);
  CHECK_EQ(outputs[1][0].data<float>()[0], 8.f);
  CHECK_EQ(f.cell(0).data()[4], 8.f);
}

TEST("an update stays where something that may fail is made of what reads it") {
  Fake f(1);
  const Value first = f.sum({f.old(0), f.old(0)});
  f.write(0, first);
  f.output(f.apply(reverse_op(), {f.apply(known_reverse_op(), {first})}));
  check_stores(f, {Aliasing::kCopy});
  CHECK_EQ(f.run()[0][0].data<float>()[4], 8.f);
}

TEST("a reader that may raise for some values is one that may fail") {
  OpDef raises = known_reverse_op();
  raises.name = "fake_raises";
  raises.traits |= kMayRaise;
  Fake f(1);
  const Value first = f.sum({f.old(0), f.old(0)});
  f.write(0, first);
  f.output(f.apply(raises, {first}));
  check_stores(f, {Aliasing::kCopy});
}

TEST("two reads of one variable are one buffer") {
  Fake f(2);
  const Value again = f.graph().add_read(SlotId(0), {DType::kFloat32, {5}, {}});
  f.write(0, f.sum({f.old(0), f.old(0)}));
  f.write(1, again);
  check_stores(f, {Aliasing::kReplace, Aliasing::kCopy});
  f.run();
  CHECK_EQ(f.cell(1).data()[3], 3.f);
}

TEST("a step declares what it reads and writes by the bytes behind") {
  Fake f(2);
  const Value alias = f.apply(alias_op(), {f.old(0)});
  const Value sum = f.sum({alias, f.old(1), f.old(0)});
  f.write(1, f.apply(reverse_op(), {sum}));
  const Plan plan = f.plan();
  std::vector<BufferUses> uses;
  for (const PlanStep& step : plan.steps) {
    const BufferUses found = step.uses(plan);
    if (!found.writes.empty()) uses.push_back(found);
  }
  CHECK_EQ(uses.size(), 2u);
  CHECK(uses[0].reads == (Values{f.old(0), f.old(1)}));
  CHECK(uses[0].writes == Values{sum});
  CHECK(uses[1].reads == Values{sum});
}

TEST("an array that somebody holds is replaced, not written into") {
  Fake f(1);
  f.write(0, f.sum({f.old(0), f.old(0)}));
  const Array held = f.cell(0).components()[0];
  f.run();
  CHECK_EQ(held.data<float>()[4], 4.f);
  CHECK_EQ(f.cell(0).data()[4], 8.f);
}

TEST("variables that share an array are written apart") {
  Fake f(2);
  f.cell(1).components() = f.cell(0).components();
  f.write(0, f.sum({f.old(0), f.old(1)}));
  f.run();
  CHECK_EQ(f.cell(0).data()[4], 8.f);
  CHECK_EQ(f.cell(1).data()[4], 4.f);
}
