#include "runtime/tree.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "runtime/layout.h"

namespace samegrad {
namespace {

// The most bytes that the states of subtrees take together.
constexpr std::int64_t kMaxStateBytes = 64 << 20;

struct SubtreeState {
  TreeRange range;
  Accumulator state;  // of the whole result
};

std::int64_t tasks_of(const WholeReduction& whole, int threads) {
  const bool parallel = threads > 1 && whole.work > thresholds().parallel_tree_work;
  return parallel ? thresholds().parts_per_thread * threads : 1;
}

std::int64_t subtree_examples(const WholeReduction& whole, std::int64_t blocks,
                              std::int64_t tasks) {
  const std::int64_t examples = whole.end - whole.begin;
  if (!whole.splits_examples || blocks >= tasks) return examples;
  const std::int64_t bytes = std::max<std::int64_t>(1, whole.reduction.whole.bytes);
  const std::int64_t most = std::max<std::int64_t>(1, kMaxStateBytes / bytes);
  const std::int64_t parts =
      std::min((tasks + blocks - 1) / std::max<std::int64_t>(blocks, 1), most);
  return std::max(whole.reduction.tree.leaf, divide_up(examples, parts));
}

void run_block(const WholeReduction& whole, const SubtreeState& subtree, const Rect& block,
               Scratch& scratch) {
  const TreeReduction& reduction = whole.reduction;
  const ReducedBlock at{subtree.range.begin, subtree.range.end, block,
                        reduction.whole.part(subtree.state, block)};
  reduce_block(reduction, whole.parts, at, scratch);
}

// Calls f(i, scratch) for all i, in parallel where that pays.
template <class F>
void for_tasks(std::int64_t count, bool parallel, const ParallelFor& loops, Scratch& scratch,
               const F& f) {
  const std::int64_t parts =
      parallel ? std::min(count, thresholds().parts_per_thread * loops.threads()) : 1;
  if (parts < 2) {
    for (std::int64_t i = 0; i < count; ++i) f(i, scratch);
    return;
  }
  loops.run(parts, [&](std::int64_t p) {
    Scratch own;
    for (std::int64_t i = count * p / parts; i < count * (p + 1) / parts; ++i) f(i, own);
  });
}

}  // namespace

std::int64_t count_examples(std::span<const OpenExamples> parts) {
  std::int64_t examples = 0;
  for (const OpenExamples& part : parts) examples += part.examples;
  return examples;
}

void reduce_block(const TreeReduction& reduction, std::span<const OpenExamples> parts,
                  const ReducedBlock& at, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const TileSet extent(reduction.state, at.block);
  const bool at_once = reduction.state.subtrees && parts.size() == 1;  // gets all examples
  if (at_once && extent.cuts() == 1 && at.begin < at.end) {
    return reduction.kernel->subtree(
        {parts[0].operands, at.begin, at.end, at.block, at.state, true, scratch, at.prefetch});
  }
  const std::int64_t partial_bytes =
      at_once ? 0 : TreeAccumulator::partial_bytes(reduction, extent, at.end - at.begin);
  auto* partials = static_cast<std::byte*>(scratch.take(std::size_t(partial_bytes)));
  TreeAccumulator accumulator(reduction, extent, at.begin, at.end, at.state, partials);
  std::int64_t first = 0;
  for (const OpenExamples& part : parts) {
    const std::int64_t begin = std::max(first, at.begin);
    const std::int64_t end = std::min(first + part.examples, at.end);
    if (begin < end) accumulator.feed(part.operands, first, begin, end, scratch);
    first += part.examples;
  }
}

void sum_of_replicas(std::span<const std::byte* const> x, DType dtype, std::int64_t n,
                     std::byte* out, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const std::int64_t bytes = n * std::int64_t(size_of(dtype)), stride = aligned(bytes);
  const TreeRange replicas{0, std::int64_t(x.size())};
  const int levels = kReplicaTree.levels(replicas.size());
  auto* partials = static_cast<std::byte*>(scratch.take(std::size_t(levels * stride)));
  const BinaryKernel add = kernels().binary(BinaryFn::k_add, dtype);
  std::array<const std::byte*, kMaxTreeLevels> at{};
  walk_tree(
      kReplicaTree, replicas,
      [&](TreeRange of, int level) { at[std::size_t(level)] = x[std::size_t(of.begin)]; },
      [&](int level) {
        std::byte* sum = level == 0 ? out : partials + level * stride;
        add(at[std::size_t(level)], at[std::size_t(level) + 1], sum, n, 1, 1);
        at[std::size_t(level)] = sum;
      });
  if (at[0] != out) std::copy_n(at[0], bytes, out);
}

const std::byte* sum_of_replicas(std::span<const std::byte* const> x, DType dtype, std::int64_t n,
                                 Scratch& scratch) {
  if (x.size() == 1) return x[0];
  auto* sum = static_cast<std::byte*>(scratch.take(std::size_t(n) * size_of(dtype)));
  sum_of_replicas(x, dtype, n, sum, scratch);
  return sum;
}

bool is_mean(const Node& all_reduce) {
  return all_reduce.attrs.as<AllReduceAttrs>().op == ReduceOp::kMean;
}

void divide(std::byte* sums, std::int64_t n, const Array& divisor) {
  kernels().binary(BinaryFn::k_div, divisor.dtype())(sums, divisor.raw(), sums, n, 1, 0);
}

void reduce_whole(const WholeReduction& whole, const ParallelFor& loops, Scratch& scratch) {
  const TreeReduction& reduction = whole.reduction;
  const std::int64_t tasks = tasks_of(whole, loops.threads());
  const TileSet blocks = reduction.blocks(tasks);
  const std::int64_t block_count = blocks.cuts();
  if (block_count == 0) return;  // a result without elements
  const Halving<> tree{subtree_examples(whole, block_count, tasks)};
  const TreeRange all{whole.begin, whole.end};
  const Scratch::Frame frame(scratch);
  std::vector<SubtreeState> subtrees;
  for_each_leaf(tree, all, [&](const TreeStep& step) {
    Accumulator state = whole.target;
    if (!subtrees.empty()) {
      const auto bytes = std::size_t(reduction.whole.bytes);
      state = reduction.whole.at(static_cast<std::byte*>(scratch.take(bytes)));
    }
    subtrees.push_back({step.range, state});
  });
  const bool parallel = tasks > 1;
  for_tasks(block_count * std::int64_t(subtrees.size()), parallel, loops, scratch,
            [&](std::int64_t i, Scratch& own) {
              run_block(whole, subtrees[std::size_t(i / block_count)], blocks.cut(i % block_count),
                        own);
            });
  if (subtrees.size() < 2) return;
  for_tasks(block_count, parallel, loops, scratch, [&](std::int64_t i, Scratch&) {
    const Rect block = blocks.cut(i);
    std::vector<Accumulator> at(subtrees.size());
    std::size_t next = 0;
    walk_tree(
        tree, all,
        [&](TreeRange, int level) {
          at[std::size_t(level)] = reduction.whole.part(subtrees[next++].state, block);
        },
        [&](int level) {
          reduction.combine(block, at[std::size_t(level)], at[std::size_t(level) + 1]);
        });
  });
}

}  // namespace samegrad
