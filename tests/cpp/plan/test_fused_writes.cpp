// A fused loop writes its results while it still reads operands: which of them may be variables'.
#include <algorithm>

#include "check.h"
#include "ops/registry.h"
#include "programs.h"

using namespace samegrad;

namespace {

// Real rows over variables of five floats, v0 = {0, 1, 2, 3, 4}, v1 = {10, 11, ...}.
struct Program {
  Program() : b(graph()) { register_all_ops(); }
  Graph& graph() { return fake.graph(); }
  const Node& fused() const {
    const auto is_fused = [](const Node& node) { return node.op->name == "fused_elementwise"; };
    const auto at = std::ranges::find_if(plan.graph.nodes, is_fused);
    CHECK(at != plan.graph.nodes.end());
    return *at;
  }
  // With all passes, unlike those of a fake program.
  void compile() { plan = samegrad::compile(graph()); }
  void run() {
    Executable executable(samegrad::compile(graph()));
    fake.run(executable);
  }

  Fake fake{2};
  Builder b;
  PlanDraft plan;  // a Plan has no empty state
};

}  // namespace

TEST("a result of a fused loop is in an operand that is not read afterwards") {
  Program p;
  const Value moment = p.b("add", {p.b("mul", {p.fake.old(0), p.fake.old(1)}), p.fake.old(0)});
  p.fake.write(0, moment);
  p.fake.write(1, p.b("sub", {p.fake.old(1), p.b("square", {moment})}));
  p.compile();
  CHECK_EQ(p.fused().outputs.size(), 2u);
  CHECK(p.plan.stores[0] == Aliasing::kInPlace);
  CHECK(p.plan.stores[1] == Aliasing::kInPlace);
  p.run();
  CHECK_EQ(p.fake.cell(0).data()[2], 26.f);
  CHECK_EQ(p.fake.cell(1).data()[2], 12.f - 26.f * 26.f);
}

TEST("a result of a fused loop does not be in an operand that is read afterwards") {
  Program p;
  const Value sum = p.b("add", {p.fake.old(0), p.fake.old(1)});
  const Value square = p.b("square", {sum});
  p.fake.write(0, sum);
  p.fake.write(1, p.b("sub", {square, p.fake.old(0)}));
  p.compile();
  CHECK_EQ(p.fused().outputs.size(), 2u);
  CHECK(p.plan.stores[0] == Aliasing::kCopy);
  CHECK(p.plan.stores[1] == Aliasing::kInPlace);
  p.run();
  CHECK_EQ(p.fake.cell(0).data()[2], 14.f);
  CHECK_EQ(p.fake.cell(1).data()[2], 14.f * 14.f - 2.f);
}
