// Replicas that are spread over processes: the same bits, whichever process has which.
#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <optional>
#include <thread>

#include "check.h"
#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "reduction_spec.h"
#include "runtime/executor.h"
#include "runtime/threads.h"
#include "runtime/world_sums.h"
#include "thread_communicator.h"
#include "weight.h"

namespace samegrad::testing {
namespace {

constexpr std::int64_t kInputs = 96, kOutputs = 128;  // a gradient of 48 KiB

// w -= mean gradient, b -= sum of y, and what replicas see of each other, of numbers drawn at
// random and of the count of all.
Graph draws_program(int replicas) {
  register_all_ops();
  Graph graph;
  graph.replicas = replicas;
  graph.add_symbol({});
  graph.symbols[0].traced_counts.assign(std::size_t(replicas), 2);
  Builder b(graph);
  const Value x =
      graph.add_argument({DType::kFloat32, {kBatchDim, kInputs}, {0, 1, 0}}, Placement::kSharded);
  graph.variables.push_back({"w", 1});
  graph.variables.push_back({"b", 1});
  const Value w = graph.add_read(SlotId(0), {DType::kFloat32, {kInputs, kOutputs}, {}});
  const Value bias = graph.add_read(SlotId(1), {DType::kFloat32, {kOutputs}, {}});
  const char* draw = "random_uniform_like";
  const Value noise = b(draw, {x}, OpRegistry::instance().get(draw).samples[0].attrs);
  const Value y = b("add", {b("matmul", {b("add", {x, noise}), w}), bias});
  const Value of_w = b("matmul", {x, y}, MatmulAttrs{.transpose_a = true});
  const Value of_b = b("reduce_sum", {y}, ReduceAttrs{.axes = {0}});
  graph.writes.push_back(
      {SlotId(0), b("sub", {w, b("all_reduce", {of_w}, AllReduceAttrs{.op = ReduceOp::kMean})})});
  graph.writes.push_back({SlotId(1), b("sub", {bias, b("all_reduce", {of_b})})});
  const Value all = b("all_gather", {x}, AllGatherAttrs{.axis = 0, .replicas = replicas});
  graph.outputs = {y, b("reduce_sum", {all}, ReduceAttrs{.axes = {1}}),
                   b("reduce_scatter", {b("mul", {all, all}), x},
                     AllGatherAttrs{.axis = 0, .replicas = replicas}),
                   b("collective_broadcast", {of_b})};
  return graph;
}

struct Result {
  std::vector<PerReplica<Array>> outputs;
  std::vector<std::shared_ptr<StateCell>> weights;
};

Array rows(std::int64_t first, std::int64_t count) {
  Array x(DType::kFloat32, {count, kInputs});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.data<float>()[i] = float((first * kInputs + i) * 7919 % 1013) / 512 - 1;
  }
  return x;
}

// Three steps on the replicas [range.begin, range.end) of those with these examples.
Result train(const Plan& plan, const std::vector<std::int64_t>& examples, ReplicaRange range,
             Communicator* communicator) {
  Executable executable(plan);
  Result result;
  result.weights = {std::make_shared<Weight>(Shape{kInputs, kOutputs}),
                    std::make_shared<Weight>(Shape{kOutputs})};
  std::vector<PerReplica<Array>> arguments(1);
  ExecuteParams call;
  call.communicator = communicator;
  call.alone = communicator != nullptr;
  call.variables = result.weights;
  call.seed = 3;
  std::int64_t first = std::accumulate(examples.begin(), examples.begin() + range.begin, 0l);
  for (int r = range.begin; r < range.end; ++r) {
    const std::int64_t count = examples[std::size_t(r)];
    arguments[0].push_back(rows(first, count));
    call.counts.push_back({count});
    complete_counts(plan.graph.symbols, call.counts.back());
    first += count;
  }
  if (!communicator) complete_counts(plan.graph.symbols, call.counts);
  call.arguments = arguments;
  for (call.step = 0; call.step < 3; ++call.step) result.outputs = executable.run(call);
  return result;
}

// On threads that play ranks with so many replicas each; the first error is thrown.
std::vector<Result> train_in_world(const Plan& plan, const std::vector<std::int64_t>& examples,
                                   const std::vector<int>& firsts, std::int64_t shared_bytes = 0) {
  Wire wire;
  const std::size_t ranks = firsts.size() - 1;
  std::optional<ThreadSegments> shared;
  if (shared_bytes) shared.emplace(int(ranks), shared_bytes);
  std::vector<Result> results(ranks);
  std::vector<std::exception_ptr> errors(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadCommunicator communicator(wire, int(rank), firsts,
                                        shared ? shared->of(int(rank)) : nullptr);
        results[rank] = train(plan, examples, communicator.own(), &communicator);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  CHECK(wire.is_empty());
  return results;
}

bool same_values(const Array& a, const Array& b) {
  return a.shape() == b.shape() && (a.bytes() == 0 || !std::memcmp(a.raw(), b.raw(), a.bytes()));
}

void check_equal(const Result& one, const Result& part, ReplicaRange range) {
  for (std::size_t w = 0; w < one.weights.size(); ++w) {
    CHECK(same_values(one.weights[w]->components()[0], part.weights[w]->components()[0]));
  }
  for (std::size_t i = 0; i < one.outputs.size(); ++i) {
    for (std::size_t r = 0; r < part.outputs[i].size(); ++r) {
      const bool differs = one.outputs[i].size() > 1;
      CHECK(same_values(one.outputs[i][differs ? std::size_t(range.begin) + r : 0],
                        part.outputs[i][r]));
    }
  }
}

}  // namespace

// Places of a tree's leaves and nodes: a number for each, which stands for its sum.
class Places {
 public:
  explicit Places(std::int64_t leaf) : leaf_(leaf) {}

  static std::uint64_t joined(std::uint64_t left, std::uint64_t right) {
    return (left * 0x9E3779B97F4A7C15ull ^ right) * 0xD6E8FEB86659FD93ull + 1;
  }
  std::uint64_t of(TreeRange tree) const {
    return by_specification(
        tree.begin, tree.size(), leaf_, 1,
        [](std::int64_t first, std::int64_t count) {
          std::uint64_t sum = 0;
          for (std::int64_t i = 0; i < count; ++i) sum = joined(sum, std::uint64_t(first + i));
          return sum;
        },
        joined);
  }

 private:
  std::int64_t leaf_;
};

// Each subtree once, from left to right, of whoever has its first leaf; joined they are the tree.
void check_tree(const std::vector<std::int64_t>& firsts, std::int64_t leaf) {
  const Places places(leaf);
  const WorldTree tree(firsts, Halving<>{leaf}, 0);
  std::vector<std::uint64_t> values;
  std::int64_t next_leaf = 0;
  for (const WorldTree::Subtree& subtree : tree.all()) {
    CHECK_EQ(subtree.range.begin, next_leaf);
    next_leaf = subtree.range.end;
    const TreeRange own = tree.range_of(subtree.rank), after = tree.after(subtree.rank);
    const bool begins = own.begin <= subtree.range.begin && subtree.range.begin < own.end;
    CHECK(begins || tree.size() == 0, subtree.range.begin, own.begin, own.end);
    CHECK(subtree.range.end <= after.end, subtree.range.end, after.end);
    CHECK(after.size() < leaf, after.begin, after.end);
    values.push_back(places.of(subtree.range));
  }
  CHECK_EQ(next_leaf, firsts.back());
  std::vector<std::uint64_t> at(kMaxTreeLevels);
  std::size_t visited = 0;
  join_subtrees(
      {0, tree.size()}, tree.all(),
      [&](std::size_t i, int level) {
        at[std::size_t(level)] = values[i];
        CHECK_EQ(i, visited++);
      },
      [&](int level) {
        const auto left = std::size_t(level);
        at[left] = Places::joined(at[left], at[left + 1]);
      });
  CHECK_EQ(visited, tree.all().size());
  CHECK_EQ(at[0], places.of({0, tree.size()}));
}

TEST("a process makes few subtrees: one where what it has is one, two logarithms at most") {
  const auto own = [](std::vector<std::int64_t> firsts, int rank) {
    const WorldTree tree(std::move(firsts), kReplicaTree, rank);
    return std::vector<TreeRange>(tree.own().begin(), tree.own().end());
  };
  CHECK(own({0, 4, 8}, 1) == (std::vector<TreeRange>{{0, 4}}));
  CHECK(own({0, 8}, 0) == (std::vector<TreeRange>{{0, 8}}));
  CHECK(own({0, 1, 4, 8}, 1) == (std::vector<TreeRange>{{0, 1}, {1, 3}}));
  CHECK(own({0, 3, 3, 8}, 1).empty());
  for (const std::int64_t leaf : {1, 4}) {
    for (const std::int64_t n : {1, 2, 3, 7, 8, 13, 64, 100, 1000, 1024}) {
      std::int64_t log = 0;
      while ((std::int64_t(1) << log) < n) ++log;
      for (std::int64_t begin = 0; begin < n; begin += 1 + n / 40) {
        for (std::int64_t end = begin + 1; end <= n; end += 1 + n / 40) {
          const WorldTree tree({0, begin, end, n}, Halving<>{leaf}, 1);
          CHECK(tree.most() <= std::max<std::int64_t>(1, 2 * log), n, begin, end);
          check_tree({0, begin, end, n}, leaf);
        }
      }
    }
  }
}

TEST("up to 1,024 processes add in the order of one, shares of any size and none") {
  for (int ranks = 1; ranks <= 1024; ranks += 1 + ranks / 8) {
    for (const std::int64_t n : {std::int64_t(0), std::int64_t(ranks), std::int64_t(1024),
                                 std::int64_t(ranks + ranks / 2)}) {
      for (const std::int64_t leaf : {1, 4}) {
        std::vector<std::int64_t> even{0}, chunks{0};
        for (int rank = 1; rank <= ranks; ++rank) {
          even.push_back(n * rank / ranks);
          chunks.push_back(std::min<std::int64_t>(n, (n + ranks - 1) / ranks * rank));
        }
        check_tree(even, leaf);
        check_tree(chunks, leaf);
      }
    }
  }
}

TEST("replicas over processes give the bits of one process, whichever has which") {
  const std::vector<std::vector<int>> worlds = {
      {0, 8}, {0, 4, 8}, {0, 3, 8}, {0, 1, 8}, {0, 2, 5, 8}, {0, 1, 2, 3, 4, 5, 6, 7, 8}};
  for (const bool fused : {true, false}) {
    PlanOptions options;
    options.fuse_updates = fused;
    const Plan plan = compile(draws_program(8), options);
    CHECK_EQ(steps_of<BlockUpdateStep>(plan).size(), fused ? 1u : 0u);
    for (const auto& examples : {std::vector<std::int64_t>{2, 2, 2, 2, 2, 2, 2, 2},
                                 std::vector<std::int64_t>{5, 1, 0, 3, 700, 2, 0, 1}}) {
      for (const int threads : {1, 2}) {
        set_thread_count(threads);
        const Result one = train(plan, examples, {0, 8}, nullptr);
        for (const std::vector<int>& firsts : worlds) {
          // The smallest size makes many buckets, so that each slot is used several times.
          for (const std::int64_t shared_bytes : {0, 64 << 10, 1 << 20}) {
            const auto ranks = train_in_world(plan, examples, firsts, shared_bytes);
            for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
              check_equal(one, ranks[rank], {firsts[rank], firsts[rank + 1]});
            }
          }
        }
      }
    }
  }
  set_thread_count(0);
}

TEST("a number of replicas that is not a power of two keeps its bits too") {
  const std::vector<std::int64_t> examples = {3, 4, 2, 1, 9};
  const Plan plan = compile(draws_program(5));
  const Result one = train(plan, examples, {0, 5}, nullptr);
  for (const std::vector<int>& firsts : {std::vector<int>{0, 2, 5}, std::vector<int>{0, 1, 4, 5}}) {
    const std::vector<Result> ranks = train_in_world(plan, examples, firsts);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      check_equal(one, ranks[rank], {firsts[rank], firsts[rank + 1]});
    }
  }
}

TEST("of a large sum only owned subtrees travel, and each part is summed by one rank") {
  constexpr std::int64_t kNumbers = 1 << 16, kBytes = kNumbers * 4;
  for (const auto& [firsts, subtrees] :
       {std::pair{std::vector<int>{0, 4, 8}, 2}, std::pair{std::vector<int>{0, 3, 8}, 4}}) {
    Wire wire;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank, firsts = firsts] {
        ThreadCommunicator communicator(wire, rank, firsts);
        const WorldTree tree({0, firsts[1], 8}, kReplicaTree, rank);
        WorldSums sums(communicator, tree.most());
        Bucket bucket;
        bucket.add(DType::kFloat32, kNumbers, kNumbers * 4, tree);
        sums.start(
            bucket,
            [&](std::span<std::byte* const> states) {
              for (std::byte* state : states) {
                std::fill_n(reinterpret_cast<float*>(state), kNumbers, float(rank + 1));
              }
            },
            [&](const std::byte* given) {
              const auto* result = reinterpret_cast<const float*>(given);
              CHECK(result[0] == result[kNumbers - 1]);
            });
        sums.finish();
      });
    }
    for (std::thread& thread : threads) thread.join();
    // Half of each subtree to who adds it up, half of the sum back from each.
    CHECK_EQ(wire.bytes(), subtrees * kBytes / 2 + kBytes);
  }
}

TEST("where one process fails, the others are told why instead of waiting") {
  const Plan plan = compile(draws_program(4));
  Wire wire;
  std::string told;
  std::thread other([&] {
    try {
      ThreadCommunicator communicator(wire, 1, {0, 2, 4});
      train(plan, {2, 2, 2, 2}, communicator.own(), &communicator);
    } catch (const Error& error) {
      told = error.what();
    }
  });
  ThreadCommunicator communicator(wire, 0, {0, 2, 4});
  bool failed = false;
  try {
    train(plan, {2, 2, 2, 2}, {0, 1}, &communicator);  // one replica is missing
  } catch (const Error&) {
    failed = true;
  }
  other.join();
  CHECK(failed);
  CHECK(
      told.find("rank 0 failed: [step] rank 0 has 2 of the world's replicas: got examples for 1") !=
          std::string::npos,
      told);
}

}  // namespace samegrad::testing
