// Sums of processes are on their way while later steps run.
#include <algorithm>
#include <cstring>
#include <string>

#include "check.h"
#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "ranks.h"
#include "runtime/executor.h"
#include "runtime/world_sums.h"
#include "weight.h"

namespace samegrad::testing {
namespace {

WorldTree tree_of_replicas(const Communicator& world) {
  std::vector<std::int64_t> firsts;
  for (int rank = 0; rank < world.size(); ++rank) firsts.push_back(world.replicas_of(rank).begin);
  firsts.push_back(world.replicas());
  return {std::move(firsts), kReplicaTree, world.rank()};
}

// Starts a sum of so many numbers, all of them `value`, and writes down what happens when.
void start(WorldSums& sums, const WorldTree& tree, std::int64_t count, int value,
           std::string& events, int ranks = 2) {
  Bucket bucket;
  bucket.add(DType::kFloat32, count, count * 4, tree);
  sums.start(
      bucket,
      [&](std::span<std::byte* const> states) {
        events += "f" + std::to_string(value);
        for (std::byte* state : states) {
          std::fill_n(reinterpret_cast<float*>(state), count, float(value));
        }
      },
      [&events, value, count, ranks](const std::byte* sum) {
        events += "t" + std::to_string(value);
        const auto* numbers = reinterpret_cast<const float*>(sum);
        CHECK_EQ(numbers[0], float(ranks * value));
        CHECK_EQ(numbers[count - 1], float(ranks * value));
      });
}

constexpr std::int64_t kIn = 96, kOut = 128;

// w_i -= rate * sum of gradients, for three weights; the rate is computed in the step, b doubles
// the sum of a bias. `reads`: an output is made of the new w_0.
Graph program(int replicas, bool reads) {
  register_all_ops();
  Graph graph;
  graph.replicas = replicas;
  graph.add_symbol({});
  graph.symbols[0].traced_counts.assign(std::size_t(replicas), 2);
  Builder b(graph);
  const Value x =
      graph.add_argument({DType::kFloat32, {kBatchDim, kIn}, {0, 1, 0}}, Placement::kSharded);
  for (const char* name : {"w0", "w1", "w2", "b", "rate"}) graph.variables.push_back({name, 1});
  const Value rate = graph.add_read(SlotId(4), {DType::kFloat32, {}, {}});
  const Value bias = graph.add_read(SlotId(3), {DType::kFloat32, {kOut}, {}});
  const Value squared = b("sqrt", {b("mul", {rate, rate})});
  Value y = kNoValue;
  for (int i = 0; i < 3; ++i) {
    const Value w = graph.add_read(SlotId(i), {DType::kFloat32, {kIn, kOut}, {}});
    y = b("add", {b("matmul", {x, w}), bias});
    const Value gradient = b("matmul", {x, y}, MatmulAttrs{.transpose_a = true});
    const Value step = b("mul", {b("all_reduce", {gradient}), squared});
    const Value after = b("sub", {w, step});
    graph.writes.push_back({SlotId(i), after});
    if (reads && i == 0) {
      graph.outputs.push_back(b("reduce_sum", {after}, ReduceAttrs{.axes = {0, 1}}));
    }
  }
  const Value of_bias = b("all_reduce", {b("reduce_sum", {y}, ReduceAttrs{.axes = {0}})});
  graph.writes.push_back({SlotId(3), b("sub", {bias, b("mul", {of_bias, squared})})});
  graph.writes.push_back({SlotId(4), b("mul", {rate, squared})});
  return graph;
}

// w0 -= a sum over rows that all replicas have gathered: there is nothing to add up over them.
Graph program_of_gathered_rows(int replicas) {
  register_all_ops();
  Graph graph;
  graph.replicas = replicas;
  graph.add_symbol({});
  graph.symbols[0].traced_counts.assign(std::size_t(replicas), 2);
  Builder b(graph);
  const Value x =
      graph.add_argument({DType::kFloat32, {kBatchDim, kIn}, {0, 1, 0}}, Placement::kSharded);
  for (const char* name : {"w0", "w1", "w2", "b", "rate"}) graph.variables.push_back({name, 1});
  const Value w = graph.add_read(SlotId(0), {DType::kFloat32, {kIn, kOut}, {}});
  const Value all = b("all_gather", {x}, AllGatherAttrs{.axis = 0, .replicas = replicas});
  const Value gradient =
      b("matmul", {all, b("matmul", {all, w})}, MatmulAttrs{.transpose_a = true});
  graph.writes.push_back({SlotId(0), b("sub", {w, gradient})});
  return graph;
}

// The all-reduce's result has no reader: its memory is not given away before it is written.
Graph program_with_unread_sum(int replicas) {
  Graph graph = program(replicas, false);
  Builder b(graph);
  for (Value v : graph.values.ids()) {
    if (graph.values[v].source != Source::kArgument) continue;
    b("all_reduce", {b("reduce_sum", {v}, ReduceAttrs{.axes = {0}})});
    break;
  }
  return graph;
}

std::vector<std::shared_ptr<StateCell>> weights() {
  std::vector<std::shared_ptr<StateCell>> cells;
  for (int i = 0; i < 3; ++i) cells.push_back(std::make_shared<Weight>(Shape{kIn, kOut}, i));
  cells.push_back(std::make_shared<Weight>(Shape{kOut}, 3));
  cells.push_back(std::make_shared<Weight>(Shape{}, 2));
  cells.back()->components()[0].data<float>()[0] = 1e-3f;
  return cells;
}

// Three steps of two replicas, all here or one of them; variables and the last output follow.
std::vector<Array> train(const Plan& plan, Communicator* communicator) {
  Executable executable(plan);
  std::vector<PerReplica<Array>> arguments(1);
  ExecuteParams call;
  call.communicator = communicator;
  call.alone = communicator != nullptr;
  const auto cells = weights();
  call.variables = cells;
  const int begin = communicator ? communicator->own().begin : 0;
  const int end = communicator ? communicator->own().end : 2;
  for (int r = begin; r < end; ++r) {
    Array rows(DType::kFloat32, {3 + r, kIn});
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      rows.data<float>()[i] = float((r * 5000 + i) * 7919 % 1013) / 512 - 1;
    }
    arguments[0].push_back(rows);
    call.counts.push_back({3 + r});
    complete_counts(plan.graph.symbols, call.counts.back());
  }
  if (!communicator) complete_counts(plan.graph.symbols, call.counts);
  call.arguments = arguments;
  std::vector<PerReplica<Array>> outputs;
  for (call.step = 0; call.step < 3; ++call.step) outputs = executable.run(call);
  std::vector<Array> found;
  for (const auto& cell : cells) found.push_back(cell->components()[0]);
  for (const PerReplica<Array>& output : outputs) found.push_back(output[0]);
  return found;
}

}  // namespace

TEST("a sum is taken once later ones are on their way, in the order in which they were started") {
  for (const std::int64_t shared_bytes : {std::int64_t(0), std::int64_t(1) << 20}) {
    on_ranks(2, shared_bytes, [&](Communicator& communicator) {
      const WorldTree tree = tree_of_replicas(communicator);
      WorldSums sums(communicator, tree.most());
      std::string events;
      for (int i = 0; i < 5; ++i) start(sums, tree, 10'000, i, events);
      // Two ranks that share memory take what they have summed at once.
      CHECK_EQ(events,
               shared_bytes ? std::string("f0f1t0f2t1f3t2f4t3") : std::string("f0f1f2t0f3t1f4t2"));
      sums.finish();
      CHECK(events.ends_with("t4"), events);
      sums.finish();  // nothing is left
      start(sums, tree, 1, 5, events);
      sums.finish();
      CHECK(events.ends_with("t4f5t5"), events);
    });
  }
}

TEST("sums of all sizes keep their turn, on any number of ranks") {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const std::int64_t shared_bytes : {0, 64 << 10, 1 << 20}) {
      on_ranks(ranks, shared_bytes, [&](Communicator& communicator) {
        const WorldTree tree = tree_of_replicas(communicator);
        WorldSums sums(communicator, tree.most());
        std::string events, takes;
        // Some are too large for the memory that is shared, some small enough for one round.
        const std::int64_t sizes[] = {10, 100'000, 6000, 10, 6000, 10, 10, 100'000, 10};
        for (int i = 0; i < 9; ++i) start(sums, tree, sizes[i], i, events, ranks);
        sums.finish();
        for (std::size_t at = 0; at < events.size(); at += 2) {
          if (events[at] == 't') takes += events[at + 1];
        }
        CHECK_EQ(takes, std::string("012345678"));
      });
    }
  }
}

TEST("a step waits for the sums that it reads, and for no others") {
  const StepId none(-1);
  for (const bool reads : {false, true}) {
    const Plan plan = compile(program(2, reads));
    StepId reader = none, first_update = none;
    int updates = 0;
    for (StepId s : plan.steps.ids()) {
      const PlanStep& step = plan.steps[s];
      const bool is_reader = std::ranges::any_of(step.nodes(), [&](NodeId n) {
        return reads && std::ranges::count(plan.graph.nodes[n].outputs, plan.graph.outputs[0]);
      });
      if (is_reader) reader = s;
      if (!step.is<BlockUpdateStep>()) continue;
      ++updates;
      if (plan.collective_done[s] != plan.steps.next_id()) first_update = s;
    }
    CHECK_EQ(updates, 3);
    CHECK_EQ(reads, reader.exists());
    // Of the three weights only one is read.
    CHECK_EQ(reads, first_update.exists());
    if (reads) CHECK(plan.collective_done[first_update] == reader);
  }
}

TEST("a sum that nobody reads keeps its memory until it is there") {
  PlanOptions keeps_all;
  keeps_all.passes.eliminate_dead = false;
  const Plan plan = compile(program_with_unread_sum(2), keeps_all);
  int unread = 0;
  for (StepId s : plan.steps.ids()) {
    if (!plan.steps[s].is<AllReduceStep>()) continue;
    for (NodeId n : plan.steps[s].nodes()) {
      const Value result = plan.graph.nodes[n].outputs[0];
      if (plan.graph.type(result).shape != Shape{kIn}) continue;
      ++unread;
      CHECK(plan.live_ranges[result].last >= plan.collective_done[s]);
    }
  }
  CHECK_EQ(unread, 1);
}

TEST("rows that all replicas have are summed once, in each process") {
  const Plan plan = compile(program_of_gathered_rows(2));
  const auto updates = steps_of<BlockUpdateStep>(plan);
  CHECK_EQ(updates.size(), 1u);
  CHECK(!updates[0]->has_replicas());
}

TEST("sums that are on their way leave the bits of one process") {
  PlanOptions keeps_all;
  keeps_all.passes.eliminate_dead = false;
  for (const Plan& plan :
       {compile(program(2, false)), compile(program(2, true)), compile(program_of_gathered_rows(2)),
        compile(program_with_unread_sum(2), keeps_all)}) {
    const std::vector<Array> one = train(plan, nullptr);
    for (const std::int64_t shared_bytes : {0, 64 << 10, 1 << 20}) {
      on_ranks(2, shared_bytes, [&](Communicator& communicator) {
        const std::vector<Array> here = train(plan, &communicator);
        CHECK_EQ(here.size(), one.size());
        for (std::size_t i = 0; i < one.size(); ++i) {
          CHECK(!std::memcmp(one[i].raw(), here[i].raw(), one[i].bytes()), i);
        }
      });
    }
  }
}

}  // namespace samegrad::testing
