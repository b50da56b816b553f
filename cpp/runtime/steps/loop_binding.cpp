// Bindings of a loop: the chunks of its examples, the places of its tree results, and their joins.
#include <algorithm>

#include "base/rounding.h"
#include "base/thresholds.h"
#include "plan/cost.h"
#include "runtime/execution_context.h"

namespace samegrad {
namespace {

// The number of examples of a loop that one thread takes at a time; with 0 threads all of them, as
// only the caller runs it.
std::int64_t chunk_of(const LoopStep& loop, std::int64_t total, int threads) {
  if (threads == 0) return std::max(loop.tile_examples, total);
  const auto part = [&](std::int64_t pieces) { return divide_up(total, pieces); };
  const std::int64_t even = part(thresholds().parts_per_thread * threads);
  // Each chunk passes through the weights at least once.
  const std::int64_t wide = streams_weights(loop) ? part(threads) : 0;
  return std::max(std::max(even, std::min(wide, loop.tile_examples)), kLeafExamples);
}

// True if the loop makes rows of the global batch.
bool makes_rows(const Graph& graph, const LoopStep& loop) {
  return std::ranges::any_of(loop.nodes, [&](NodeId n) {
    return std::ranges::any_of(graph.nodes[n].outputs, [&](Value value) {
      return graph.placement(value) == Placement::kSharded;
    });
  });
}

void make_chunks(const Plan& plan, const LoopStep& loop, const LoopLayout& layout,
                 const ExecutionContext& context, LoopBinding& binding) {
  const auto symbol = std::size_t(loop.symbol);
  std::vector<TreeRange> lists;
  if (loop.joint)
    lists = {context.subtrees(loop.symbol).begin(), context.subtrees(loop.symbol).end()};
  for (int r = 0; !loop.joint && r < (loop.varying ? context.replicas() : 1); ++r) {
    // A replica's own values are made of no other process's examples.
    const bool here = r < context.own_replicas() || makes_rows(plan.graph, loop);
    lists.push_back({0, here ? context.of_replica(r).local_examples[symbol] : 0});
  }
  const std::int64_t total = loop.varying ? context.of_replica(0).global_examples[symbol]
                                          : context.of_replica(0).local_examples[symbol];
  binding.parallel = context.threads() > 1 &&
                     layout.work * double(total) > double(thresholds().parallel_loop_work);
  binding.chunk_examples = chunk_of(loop, total, binding.parallel ? context.threads() : 0);
  const auto add = [&](int list, std::int64_t begin, std::int64_t end) {
    binding.chunks.push_back({list, begin, end, {}, {}, 0});
    binding.chunks.back().trees.resize(loop.trees.size());
  };
  for (std::size_t i = 0; i < lists.size(); ++i) {
    binding.first_chunk.push_back(std::int32_t(binding.chunks.size()));
    for_each_leaf(Halving<>{binding.chunk_examples}, lists[i],
                  [&](const TreeStep& chunk) { add(int(i), chunk.range.begin, chunk.range.end); });
  }
  binding.first_chunk.push_back(std::int32_t(binding.chunks.size()));
  // Rows of a leaf that begins in another process, which makes it.
  if (loop.joint) {
    const std::int64_t own = context.of_joint().local_examples[symbol];
    const std::int64_t before = lists.empty() ? own : lists[0].begin;
    if (before > 0) add(-1, 0, before);
  }
  binding.wide = binding.parallel && std::ssize(binding.chunks) < context.threads();
}

// Threads that share a chunk fold large states in blocks of their own.
void make_blocks(const Plan& plan, const LoopStep& loop, const LoopLayout& layout, int threads,
                 LoopBinding& binding) {
  for (std::size_t t = 0; t < layout.trees.size(); ++t) {
    binding.first_block.push_back(std::int32_t(binding.blocks.size()));
    const TreeReduction& tree = layout.trees[t];
    const double work = work_of_example(plan.graph, *plan.graph.producer(loop.trees[t])) *
                        double(layout.tile_examples);
    if (!binding.wide || work < double(thresholds().parallel_loop_work)) {
      binding.blocks.push_back(tree.whole);
      continue;
    }
    constexpr std::int64_t kLeastBytes = 1024;  // of a block: the rows of a tile are enough work
    const TileSet cuts = tree.blocks(thresholds().parts_per_thread * threads, kLeastBytes);
    for (std::int64_t i = 0; i < cuts.cuts(); ++i) {
      binding.blocks.emplace_back(tree.state, cuts.cut(i));
    }
  }
  binding.first_block.push_back(std::int32_t(binding.blocks.size()));
  for (Chunk& chunk : binding.chunks) {
    for (std::size_t t = 0; t < layout.trees.size(); ++t) {
      for (std::int32_t b = binding.first_block[t]; b < binding.first_block[t + 1]; ++b) {
        chunk.partials.push_back(chunk.partial_bytes);
        chunk.partial_bytes += TreeAccumulator::partial_bytes(
            layout.trees[t], binding.blocks[std::size_t(b)], chunk.end - chunk.begin);
      }
    }
  }
}

void place_trees(const LoopStep& loop, const LoopLayout& layout, StepId step,
                 ExecutionContext& context, LoopBinding& binding) {
  // The first chunk of a list folds into the result itself, where that is the state.
  for (Chunk& chunk : binding.chunks) {
    if (chunk.list < 0) continue;
    const auto list = std::size_t(chunk.list);
    const bool first = &chunk == &binding.chunks[std::size_t(binding.first_chunk[list])];
    for (std::size_t t = 0; t < chunk.trees.size(); ++t) {
      const TreeReduction& tree = layout.trees[t];
      if (first && !tree.kernel->finish) {
        const std::int64_t offset = loop.joint ? chunk.list * context.sum_stride(loop.trees[t]) : 0;
        const int replica = loop.joint ? 0 : chunk.list;
        chunk.trees[t] = {context.address_of(replica, loop.trees[t]), offset};
      } else {
        chunk.trees[t] = {context.reserve(tree.whole.bytes, step, step)};
      }
    }
  }
}

// The blocks of all joins are the results of all trees, once for each replica with several chunks.
[[maybe_unused]] bool join_everything(const LoopBinding& binding, const LoopLayout& layout) {
  std::int64_t elements = 0;
  for (const Join& join : binding.joins) elements += join.block.size();
  for (std::size_t r = 0; r + 1 < binding.first_chunk.size(); ++r) {
    if (binding.first_chunk[r + 1] - binding.first_chunk[r] == 1) continue;
    for (const TreeReduction& tree : layout.trees) elements -= tree.whole.block.size();
  }
  return elements == 0;
}

void make_joins(const LoopLayout& layout, int threads, LoopBinding& binding) {
  std::int64_t bytes = 0;
  const int tasks = binding.parallel ? int(thresholds().parts_per_thread) * threads : 1;
  for (std::size_t r = 0; r + 1 < binding.first_chunk.size(); ++r) {
    const std::int64_t chunks = binding.first_chunk[r + 1] - binding.first_chunk[r];
    if (chunks < 2) continue;
    for (std::size_t t = 0; t < layout.trees.size(); ++t) {
      const TileSet blocks = layout.trees[t].blocks(tasks);
      for (std::int64_t i = 0; i < blocks.cuts(); ++i) {
        binding.joins.push_back({int(r), t, blocks.cut(i)});
      }
      bytes += blocks.bytes * chunks;
    }
  }
  SG_ASSERT(join_everything(binding, layout), "joins of a loop");
  binding.parallel_joins = binding.parallel && bytes > thresholds().parallel_replica_bytes;
}

}  // namespace

LoopBinding bind_step(const LoopStep& loop, const StepToBind& to_bind) {
  const auto& [plan, step, context] = to_bind;
  const LoopLayout& layout = context.layout(step);
  LoopBinding binding;
  make_chunks(plan, loop, layout, context, binding);
  make_blocks(plan, loop, layout, context.threads(), binding);
  make_joins(layout, context.threads(), binding);
  place_trees(loop, layout, step, context, binding);
  return binding;
}

}  // namespace samegrad
