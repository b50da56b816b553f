// Variables that ranks of a machine have together: each rank updates its share of them.
#include "runtime/shared_state.h"

#include <cstring>

#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "ranks.h"
#include "runtime/executor.h"
#include "weight.h"

namespace samegrad::testing {
namespace {

constexpr std::int64_t kLongIn = 96, kLongOut = 1024;  // 384 KiB
constexpr std::int64_t kShared = 1 << 20;              // of a segment: pieces of 128 KiB

// m = m / 2 + the mean gradient, w -= m / 8.
Graph momentum_program(int replicas) {
  register_all_ops();
  Graph graph;
  graph.replicas = replicas;
  graph.add_symbol({});
  graph.symbols[0].traced_counts.assign(std::size_t(replicas), 2);
  Builder b(graph);
  const Value x =
      graph.add_argument({DType::kFloat32, {kBatchDim, kLongIn}, {0, 1, 0}}, Placement::kSharded);
  for (const char* name : {"w", "m"}) graph.variables.push_back({name, 1});
  const Value w = graph.add_read(SlotId(0), {DType::kFloat32, {kLongIn, kLongOut}, {}});
  const Value m = graph.add_read(SlotId(1), {DType::kFloat32, {kLongIn, kLongOut}, {}});
  const Value gradient = b("matmul", {x, b("matmul", {x, w})}, MatmulAttrs{.transpose_a = true});
  const Value mean = b("all_reduce", {gradient}, AllReduceAttrs{.op = ReduceOp::kMean});
  const auto number = [&](float value) { return graph.add_constant(Array::scalar(value)); };
  const Value moved = b("add", {b("mul", {m, number(0.5f)}), mean});
  graph.writes.push_back({SlotId(0), b("sub", {w, b("mul", {moved, number(0.125f)})})});
  graph.writes.push_back({SlotId(1), moved});
  return graph;
}

// A process, or the only one, that trains.
class Trainer {
 public:
  Trainer(const Plan& plan, int replicas, Communicator* communicator)
      : plan_(plan), executable_(plan), range_{0, replicas} {
    if (communicator) range_ = communicator->own();
    call_.communicator = communicator;
    call_.alone = communicator != nullptr;
    call_.variables = cells_;
    for (int r = range_.begin; r < range_.end; ++r) {
      call_.counts.push_back({1 + r % 3});
      Array rows(DType::kFloat32, {1 + r % 3, kLongIn});
      for (std::int64_t i = 0; i < rows.size(); ++i) {
        rows.data<float>()[i] = float((r * 5000 + i) * 7919 % 1013) / 5120 - 0.1f;
      }
      arguments_[0].push_back(rows);
      complete_counts(plan.graph.symbols, call_.counts.back());
    }
    if (!communicator) complete_counts(plan.graph.symbols, call_.counts);
    call_.arguments = arguments_;
  }

  void step() { executable_.run(call_); }
  void dry_step() {
    call_.dry = true;
    executable_.run(call_);
    call_.dry = false;
  }
  Weight& cell(std::size_t i) { return static_cast<Weight&>(*cells_[i]); }
  void check_same(Trainer& one) {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const Array &a = cell(i).array(), &b = one.cell(i).array();
      CHECK(!std::memcmp(a.raw(), b.raw(), a.bytes()), i);
    }
  }
  bool all_in_common() { return cell(0).is_in_common() && cell(1).is_in_common(); }

 private:
  const Plan& plan_;
  Executable executable_;
  ReplicaRange range_;
  std::vector<std::shared_ptr<StateCell>> cells_ = {
      std::make_shared<Weight>(Shape{kLongIn, kLongOut}, 0),
      std::make_shared<Weight>(Shape{kLongIn, kLongOut}, 5)};
  std::vector<PerReplica<Array>> arguments_{1};
  ExecuteParams call_;
};

// Large sums travel as bfloat16, up to the end of a test, however it ends.
struct AsBFloat16 {
  AsBFloat16() { set_sums_as_bfloat16(true); }
  ~AsBFloat16() { set_sums_as_bfloat16(false); }
};

void check_one_update(const Plan& plan) {
  const auto updates = steps_of<BlockUpdateStep>(plan);
  CHECK_EQ(updates.size(), 1u);
  CHECK_EQ(plan.graph.nodes[updates[0]->update].outputs.size(), 2u);
}

}  // namespace

TEST("each rank updates its share of what all have together, to the bits of one process") {
  const std::vector<std::vector<int>> jobs = {{0, 1, 2},
                                              {0, 2, 4},
                                              {0, 1, 2, 3, 4},
                                              {0, 3, 4},
                                              {0, 1, 3, 4},
                                              {0, 2, 5, 7},
                                              {0, 1, 2, 3, 4, 5, 6, 7, 8}};
  for (const std::vector<int>& firsts : jobs) {
    const Plan plan = compile(momentum_program(firsts.back()));
    check_one_update(plan);
    Trainer one(plan, firsts.back(), nullptr);
    for (int i = 0; i < 3; ++i) one.step();
    on_ranks(firsts, kShared, [&](Communicator& communicator) {
      Trainer trainer(plan, firsts.back(), &communicator);
      for (int i = 0; i < 3; ++i) trainer.step();
      CHECK(trainer.all_in_common());
      trainer.check_same(one);
    });
  }
}

TEST("ranks that share too little memory, or none, have variables of their own") {
  const Plan plan = compile(momentum_program(2));
  Trainer one(plan, 2, nullptr);
  one.step();
  for (const std::int64_t shared_bytes : {0, 8 << 10}) {
    on_ranks(2, shared_bytes, [&](Communicator& communicator) {
      Trainer trainer(plan, 2, &communicator);
      trainer.step();
      CHECK(!trainer.cell(0).is_in_common());
      trainer.check_same(one);
    });
  }
}

TEST("who holds an array of a variable keeps its values while others train on") {
  const Plan plan = compile(momentum_program(2));
  Trainer one(plan, 2, nullptr), before(plan, 2, nullptr);
  for (int i = 0; i < 4; ++i) one.step();
  for (int i = 0; i < 2; ++i) before.step();
  on_ranks(2, kShared, [&](Communicator& communicator) {
    Trainer trainer(plan, 2, &communicator);
    for (int i = 0; i < 2; ++i) trainer.step();
    std::optional<Array> held;
    if (communicator.rank() == 1) held = trainer.cell(0).array();
    for (int i = 0; i < 2; ++i) trainer.step();
    CHECK(trainer.all_in_common());
    trainer.check_same(one);
    const Array& old = before.cell(0).array();
    if (held) CHECK(!std::memcmp(held->raw(), old.raw(), old.bytes()));
  });
}

TEST("a variable that was assigned has memory of its own up to the next update") {
  const Plan plan = compile(momentum_program(2));
  Trainer one(plan, 2, nullptr);
  one.step();
  const Array assigned = Weight({kLongIn, kLongOut}, 9).array();
  one.cell(0).array() = assigned.copy();
  for (int i = 0; i < 2; ++i) one.step();
  on_ranks(2, kShared, [&](Communicator& communicator) {
    Trainer trainer(plan, 2, &communicator);
    trainer.step();
    const Array before = trainer.cell(0).array();  // is in common memory, and is held
    trainer.cell(0).array() = assigned.copy();
    CHECK(!trainer.all_in_common());
    for (int i = 0; i < 2; ++i) trainer.step();
    CHECK(trainer.all_in_common());
    trainer.check_same(one);
    Trainer first(plan, 2, nullptr);
    first.step();
    CHECK(!std::memcmp(before.raw(), first.cell(0).array().raw(), before.bytes()));
  });
}

TEST("one rank alone may have replaced a variable by an equal one") {
  const Plan plan = compile(momentum_program(2));
  Trainer one(plan, 2, nullptr);
  for (int i = 0; i < 3; ++i) one.step();
  on_ranks(2, kShared, [&](Communicator& communicator) {
    Trainer trainer(plan, 2, &communicator);
    trainer.step();
    Array& own = trainer.cell(1).array();
    if (communicator.rank() == 0) own = own.copy();
    for (int i = 0; i < 2; ++i) trainer.step();
    CHECK(trainer.all_in_common());
    trainer.check_same(one);
  });
}

TEST("a dry step leaves what is in common memory as it is") {
  const Plan plan = compile(momentum_program(2));
  Trainer one(plan, 2, nullptr);
  one.step();
  on_ranks(2, kShared, [&](Communicator& communicator) {
    Trainer trainer(plan, 2, &communicator);
    trainer.step();
    trainer.dry_step();
    CHECK(trainer.all_in_common());
    trainer.check_same(one);
  });
}

TEST("sums that travel as bfloat16 have the same bits in common memory as in messages") {
  const Plan plan = compile(momentum_program(3));
  const AsBFloat16 narrow;
  std::vector<Array> sent(2), shared(2);
  for (const std::int64_t shared_bytes : {std::int64_t(0), kShared}) {
    std::vector<Array>& found = shared_bytes ? shared : sent;
    on_ranks(3, shared_bytes, [&](Communicator& communicator) {
      Trainer trainer(plan, 3, &communicator);
      for (int i = 0; i < 2; ++i) trainer.step();
      CHECK_EQ(trainer.all_in_common(), shared_bytes > 0);
      for (std::size_t i = 0; i < 2 && communicator.rank() == 1; ++i) {
        found[i] = trainer.cell(i).array().copy();
      }
    });
  }
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(!std::memcmp(sent[i].raw(), shared[i].raw(), sent[i].bytes()), i);
  }
}

}  // namespace samegrad::testing
