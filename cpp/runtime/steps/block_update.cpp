#include "runtime/steps/block_update.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/prefetch.h"
#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "runtime/block_pieces.h"
#include "runtime/check_kernel.h"
#include "runtime/hashes.h"
#include "runtime/step_run.h"
#include "runtime/threads.h"
#include "runtime/tree.h"
#include "runtime/world_sums.h"

namespace samegrad {
namespace {

// Small enough for a bucket, and enough of them for many threads.
TileSet blocks_in_world(const UpdateBinding& binding, const WorldSums& world) {
  constexpr std::int64_t kBlocksOfBucket = 8;
  const TreeReduction& reduction = binding.sums[0].reduction;
  const std::int64_t bytes =
      std::max<std::int64_t>(1, world.bucket_bytes() / std::ssize(binding.sums));
  return reduction.blocks(
      std::max<std::int64_t>(1, reduction.whole.bytes * kBlocksOfBucket / bytes));
}

class BlockwiseUpdate {
 public:
  BlockwiseUpdate(const Plan& plan, const BlockUpdateStep& step, UpdateBinding& binding,
                  const ExecuteParams& call, ExecutionContext& context)
      : plan_(plan), step_(step), binding_(binding), call_(call), context_(context) {}

  void run() {
    open_all([&] {
      const TileSet all = blocks();
      for_blocks(all, 0, all.cuts(), [&](std::int64_t, const Rect& block, Scratch& own) {
        std::byte** results = pointers(own);
        const PrefetchBlocks prefetch = prefetch_of(block);
        const std::size_t last = step_.sums.size() - 1;
        for (std::size_t s = 0; s <= last; ++s) {
          results[s] = reduce(s, block, all_of(s), own, s == last ? &prefetch : nullptr);
        }
        finish(block, {0, block.size()}, results, own);
      });
    });
  }

  // Starts the sums of all blocks in buckets, which do not depend on a process's number of threads.
  static void start(const std::shared_ptr<BlockwiseUpdate>& self, WorldSums& world) {
    self->cut(world);
    self->open_all([&] {
      for (const BlockBucket& bucket : self->buckets_) {
        if (self->binding_.in_common) {
          world.start_shared(
              bucket.of_world,
              [&](std::span<std::byte* const> states) { self->fill(bucket, states, world); },
              [self, &bucket, &world](const WorldSums::Summands& summands) {
                self->complete_shard(bucket, summands, world);
              });
          continue;
        }
        world.start(
            bucket.of_world,
            [&](std::span<std::byte* const> states) { self->fill(bucket, states, world); },
            [self, &bucket](const std::byte* sum) { self->take(bucket, sum); });
      }
    });
  }

 private:
  // A bucket: blocks of all sums that are sent together.
  struct BlockBucket {
    Bucket of_world;
    std::int64_t begin;
    std::vector<std::int64_t> at = {};     // of each block and sum in it
    std::vector<std::int64_t> first = {};  // of each block: how many elements come before it
    std::int64_t elements = 0;             // of a sum
  };

  // Operands of the reductions are open until f() is over.
  template <class F>
  void open_all(const F& f) {
    Scratch& scratch = context_.main_task().scratch;
    const Scratch::Frame frame(scratch);
    take_at_once(scratch, binding_.scratch.open + binding_.scratch.task);
    for (std::size_t s = 0; s < step_.sums.size(); ++s) open(s);
    f();
  }

  // The tree of a sum, in a run of several processes.
  const WorldTree& tree_of(std::size_t s) const {
    const ExampleSum& sum = step_.sums[s];
    return context_.tree_of(sum.tree.exists() ? plan_.graph.nodes[sum.tree].outputs[0]
                                              : plan_.graph.nodes[sum.all_reduce].inputs[0]);
  }
  // All parts of a sum, or examples of a list, and those of an own subtree.
  TreeRange all_of(std::size_t s) const {
    const UpdateBinding::Sum& sum = binding_.sums[s];
    return sum.is_list ? TreeRange{0, count_examples(sum.parts)}
                       : TreeRange{0, std::ssize(sum.parts)};
  }
  TreeRange subtree(std::size_t s, std::size_t t) const {
    return step_.sums[s].tree.exists() ? tree_of(s).own()[t] : context_.terms_of(partial_of(s), t);
  }
  // The partial sum that an all-reduce reads.
  Value partial_of(std::size_t s) const {
    return plan_.root[plan_.graph.nodes[step_.sums[s].all_reduce].inputs[0]];
  }

  void cut(const WorldSums& world) {
    all_ = blocks_in_world(binding_, world);
    for (std::int64_t i = 0; i < all_->cuts(); ++i) {
      const std::int64_t size = all_->cut(i).size();
      std::int64_t bytes = 0;
      for (const UpdateBinding::Sum& sum : binding_.sums) {
        bytes += aligned(size * std::int64_t(size_of(sum.reduction.dtype)));
      }
      if (buckets_.empty() || buckets_.back().of_world.bytes + bytes > world.bucket_bytes()) {
        buckets_.push_back({.of_world = {}, .begin = i});
      }
      BlockBucket& bucket = buckets_.back();
      bucket.first.push_back(std::exchange(bucket.elements, bucket.elements + size));
      for (const UpdateBinding::Sum& sum : binding_.sums) {
        const auto [dtype, whole] = std::pair(sum.reduction.dtype, sum.reduction.whole.bytes);
        const WorldTree& tree = tree_of(std::size_t(&sum - binding_.sums.data()));
        bucket.at.push_back(binding_.in_common
                                ? bucket.of_world.add_shared(dtype, size, whole, tree)
                                : bucket.of_world.add(dtype, size, whole, tree));
      }
    }
  }

  // Calls f(which number of the bucket the first sum's block is, block, scratch).
  template <class F>
  void for_blocks_of(const BlockBucket& bucket, const F& f) const {
    const std::size_t sums = step_.sums.size();
    const auto count = std::int64_t(bucket.at.size() / sums);
    for_blocks(*all_, bucket.begin, bucket.begin + count,
               [&](std::int64_t i, const Rect& block, Scratch& own) {
                 f(std::size_t(i - bucket.begin) * sums, block, own);
               });
  }

  void fill(const BlockBucket& bucket, std::span<std::byte* const> states,
            const WorldSums& world) const {
    for_blocks_of(bucket, [&](std::size_t first, const Rect& block, Scratch& own) {
      for (std::size_t s = 0; s < step_.sums.size(); ++s) {
        for (std::size_t t = 0; t < tree_of(s).own().size(); ++t) {
          const Scratch::Frame frame(own);
          const std::byte* sum = part_of(s, block, subtree(s, t), own);
          if (binding_.in_common) {
            const Shard own = shard_of(bucket, first, block, world);
            world.put_shared(states[t], bucket.of_world.numbers[first + s], own, sum);
          } else {
            world.put(states[t] + bucket.at[first + s], sum, block.size() * width(s));
          }
        }
      }
    });
  }

  void take(const BlockBucket& bucket, const std::byte* sum) const {
    for_blocks_of(bucket, [&](std::size_t first, const Rect& block, Scratch& own) {
      std::byte** results = pointers(own);
      for (std::size_t s = 0; s < step_.sums.size(); ++s) {
        results[s] = own_sum(s, sum + bucket.at[first + s], block, own);
      }
      finish(block, {0, block.size()}, results, own);
    });
  }

  // The elements of a block that this rank updates.
  Shard shard_of(const BlockBucket& bucket, std::size_t first, const Rect& block,
                 const WorldSums& world) const {
    const std::int64_t before = bucket.first[first / step_.sums.size()], size = block.size();
    const Shard own = world.own_shard(bucket.elements);
    return {std::clamp<std::int64_t>(own.begin - before, 0, size),
            std::clamp<std::int64_t>(own.end - before, 0, size)};
  }

  // With variables in common memory, each rank writes its part of a block, whose sums stay in a
  // cache.
  void complete_shard(const BlockBucket& bucket, const WorldSums::Summands& summands,
                      const WorldSums& world) const {
    const std::int64_t most = thresholds().fused_piece;
    for_blocks_of(bucket, [&](std::size_t first, const Rect& block, Scratch& own) {
      const Shard all = shard_of(bucket, first, block, world);
      for (std::int64_t begin = all.begin; begin < all.end; begin += most) {
        const Shard some{begin, std::min(begin + most, all.end)};
        const Scratch::Frame frame(own);
        std::byte** results = pointers(own);
        for (std::size_t s = 0; s < step_.sums.size(); ++s) {
          results[s] = static_cast<std::byte*>(own.take(std::size_t(some.size() * width(s))));
          summands.add_up(bucket.of_world.numbers[first + s], some, results[s]);
        }
        finish(block, some, results, own);
      }
    });
  }

  // Ranks may share the memory of a sum: none of them writes into it.
  std::byte* own_sum(std::size_t s, const std::byte* shared, const Rect& block,
                     Scratch& scratch) const {
    if (!is_divided(s)) return const_cast<std::byte*>(shared);
    const auto bytes = block.size() * std::int64_t(size_of(binding_.sums[s].reduction.dtype));
    auto* own = static_cast<std::byte*>(scratch.take(std::size_t(bytes)));
    std::copy_n(shared, bytes, own);
    return own;
  }
  bool is_divided(std::size_t s) const {
    const NodeId all_reduce = step_.sums[s].all_reduce;
    return all_reduce.exists() && is_mean(plan_.graph.nodes[all_reduce]);
  }

  bool is_parallel() const {
    return parallel_loops().threads() > 1 && work_ > thresholds().parallel_tree_work;
  }
  TileSet blocks() const {
    const int threads = parallel_loops().threads();
    return binding_.sums[0].reduction.blocks(is_parallel() ? thresholds().parts_per_thread * threads
                                                           : 1);
  }

  // Calls f(number, block, scratch) for the blocks of [begin, end).
  template <class F>
  void for_blocks(const TileSet& all, std::int64_t begin, std::int64_t end, const F& f) const {
    const auto run = [&](std::int64_t i, Scratch& scratch) {
      const Scratch::Frame frame(scratch);
      take_at_once(scratch, binding_.scratch.task);
      f(i, all.cut(i), scratch);
    };
    if (!is_parallel()) {
      for (std::int64_t i = begin; i < end; ++i) run(i, context_.main_task().scratch);
      return;
    }
    parallel_loops().run(end - begin, [&](std::int64_t i) {
      const ExecutionContext::TaskLease lease(context_);
      run(begin + i, (*lease).scratch);
    });
  }

  std::byte** pointers(Scratch& scratch) const {
    return static_cast<std::byte**>(scratch.take(step_.sums.size() * sizeof(std::byte*)));
  }

  // Reserves the bytes at once, so that the next takes are from one block of memory.
  static void take_at_once(Scratch& scratch, std::size_t bytes) {
    const Scratch::Frame frame(scratch);
    scratch.take(bytes);
  }

  void open(std::size_t s) {
    if (!step_.sums[s].tree.exists()) return open_given(s);
    const Node& node = plan_.graph.nodes[step_.sums[s].tree];
    const NodeBinding& of = context_.node(step_.sums[s].tree);
    UpdateBinding::Sum& sum = binding_.sums[s];
    sum.parts.clear();  // keeps its memory
    for (std::size_t r = 0; r < of.views.size(); ++r) {
      open_part(s, node, of.views[r], of.examples[r], int(r));
    }
  }

  void open_part(std::size_t s, const Node& node, std::span<const View> views,
                 std::int64_t examples, int replica) {
    UpdateBinding::Sum& sum = binding_.sums[s];
    const KernelArgs args{
        .attrs = node.attrs,
        .in = views.first(node.inputs.size()),
        .out = views.subspan(node.inputs.size()),
        .examples = examples,
        .symbol = std::max(context_.node(step_.sums[s].tree).symbol, 0),
        .replica_context = sum.is_list ? context_.of_joint() : context_.of_replica(replica),
        .scratch = context_.main_task().scratch,
        .parallel = &parallel_loops()};
    sum.parts.push_back({examples > 0 ? node.op->tree.open(args) : nullptr, examples});
    work_ += sum.reduction.whole.block.size() * (examples + 1);
  }

  void open_given(std::size_t s) {
    UpdateBinding::Sum& sum = binding_.sums[s];
    sum.parts.clear();
    for (std::int64_t i = 0; i < context_.terms(partial_of(s)); ++i) {
      sum.parts.push_back({context_.term(partial_of(s), i), 0});
      work_ += 2 * sum.reduction.whole.block.size();
    }
  }

  // Finishes some elements of a block of each sum, once these are complete.
  void finish(const Rect& block, Shard some, std::byte* const* results, Scratch& scratch) const {
    for (std::size_t s = 0; s < step_.sums.size(); ++s) {
      if (is_divided(s)) divide(results[s], some.size(), binding_.sums[s].divisor);
    }
    if (step_.update.exists()) {
      update(block, some, results, scratch);
    } else {
      store(block, results[0]);
    }
    if (call_.hashes && (binding_.in_common || hashes_replicated(call_))) {
      add_hashes(block, some, results);
    }
  }

  // While the sums and what is updated by them are in a cache.
  void add_hashes(const Rect& block, Shard some, std::byte* const* results) const {
    Hashes& hashes = *call_.hashes;
    const PartOfBlock part{block, columns(), {some.begin, some.end}};
    for (std::size_t s = 0; s < step_.sums.size(); ++s) {
      hashes.add_packed(step_.sums[s].result, part, results[s]);
    }
    if (!step_.update.exists()) return;
    const Node& node = plan_.graph.nodes[step_.update];
    const std::vector<View>& views = context_.node(step_.update).views[0];
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      hashes.add_part(node.outputs[k], part, views[node.inputs.size() + k].as<std::byte>());
    }
  }

  // Sums a block over some replicas' examples; prefetches the update's operands if it is next.
  std::byte* reduce(std::size_t s, const Rect& block, TreeRange of, Scratch& scratch,
                    const PrefetchBlocks* prefetch = nullptr) const {
    return step_.sums[s].tree.exists() ? fold(s, block, of, scratch, prefetch)
                                       : add(binding_.sums[s], block, of, scratch);
  }

  // Like reduce(), but the result must not be changed.
  const std::byte* part_of(std::size_t s, const Rect& block, TreeRange of, Scratch& scratch) const {
    if (step_.sums[s].tree.exists()) return fold(s, block, of, scratch, nullptr);
    return sum_of_replicas(given(binding_.sums[s], block, of, scratch),
                           binding_.sums[s].reduction.dtype, block.size(), scratch);
  }

  std::int64_t width(std::size_t s) const {
    return std::int64_t(size_of(binding_.sums[s].reduction.dtype));
  }

  PrefetchBlocks prefetch_of(const Rect& block) const {
    PrefetchBlocks prefetch;
    if (!step_.update.exists()) return prefetch;
    const Node& node = plan_.graph.nodes[step_.update];
    const std::vector<View>& whole = context_.node(step_.update).views[0];
    const TreeReduction& sum = binding_.sums[0].reduction;
    const auto item = std::int64_t(size_of(sum.dtype));
    prefetch.stride = columns() * item;
    for (std::size_t k = 0; k < node.inputs.size() && prefetch.count < PrefetchBlocks::kMost; ++k) {
      const View& view = whole[k];
      const bool is_sum = std::ranges::any_of(
          step_.sums, [&](const ExampleSum& of) { return of.result == node.inputs[k]; });
      if (is_sum || view.size() != sum.whole.block.size() || view.dtype != sum.dtype) continue;
      prefetch.data[prefetch.count++] =
          view.as<std::byte>() + block.row * prefetch.stride + block.column * item;
    }
    return prefetch;
  }

  // Adds the values given to the replicas; such a block is within one row.
  static std::byte* add(const UpdateBinding::Sum& sum, const Rect& block, TreeRange of,
                        Scratch& scratch) {
    const TileSet extent(sum.reduction.state, block);
    auto* memory = static_cast<std::byte*>(scratch.take(std::size_t(extent.bytes)));
    sum_of_replicas(given(sum, block, of, scratch), sum.reduction.dtype, block.size(), memory,
                    scratch);
    return memory;
  }

  static std::span<const std::byte* const> given(const UpdateBinding::Sum& sum, const Rect& block,
                                                 TreeRange of, Scratch& scratch) {
    const auto count = std::size_t(of.size());
    const auto item = std::int64_t(size_of(sum.reduction.dtype));
    auto* parts = static_cast<const std::byte**>(scratch.take(count * sizeof(std::byte*)));
    for (std::size_t i = 0; i < count; ++i) {
      const void* operand = sum.parts[std::size_t(of.begin) + i].operands;
      parts[i] = static_cast<const std::byte*>(operand) + block.column * item;
    }
    return {parts, count};
  }

  std::byte* fold(std::size_t s, const Rect& block, TreeRange of, Scratch& scratch,
                  const PrefetchBlocks* prefetch) const {
    const UpdateBinding::Sum& sum = binding_.sums[s];
    const TileSet extent(sum.reduction.state, block);
    if (sum.is_list) {
      auto* memory = static_cast<std::byte*>(scratch.take(std::size_t(extent.bytes)));
      const ReducedBlock all{of.begin, of.end, block, extent.at(memory), prefetch};
      reduce_block(sum.reduction, sum.parts, all, scratch);
      return memory;
    }
    const DType dtype = sum.reduction.dtype;
    const std::int64_t bytes = kReplicaTree.levels(of.size()) * extent.bytes;
    auto* memory = static_cast<std::byte*>(scratch.take(std::size_t(bytes)));
    const BinaryKernel add = kernels().binary(BinaryFn::k_add, dtype);
    walk_tree(
        kReplicaTree, of,
        [&](TreeRange replica, int level) {
          const OpenExamples& part = sum.parts[std::size_t(replica.begin)];
          const ReducedBlock at{0, part.examples, block, extent.at(memory + level * extent.bytes),
                                replica.end == of.end ? prefetch : nullptr};
          reduce_block(sum.reduction, {&part, 1}, at, scratch);
        },
        [&](int level) {
          std::byte* left = memory + level * extent.bytes;
          add(left, left + extent.bytes, left, block.size(), 1, 1);
        });
    return memory;
  }

  std::int64_t columns() const { return binding_.sums[0].reduction.whole.block.columns; }

  void store(const Rect& block, const std::byte* from) const {
    const auto item = std::int64_t(size_of(binding_.sums[0].reduction.dtype));
    std::byte* to = context_.base(0, plan_.root[step_.sums[0].result]);
    for_each_piece(block, columns(), {0, block.size()},
                   [&](std::int64_t at, std::int64_t in_block, std::int64_t count) {
                     std::copy_n(from + in_block * item, count * item, to + at * item);
                   });
  }

  // results[s] is where the sum of element some.begin is.
  void update(const Rect& block, Shard some, std::byte* const* results, Scratch& scratch) const {
    const Node& node = plan_.graph.nodes[step_.update];
    const std::vector<View>& whole = context_.node(step_.update).views[0];
    const std::int64_t size = binding_.sums[0].reduction.whole.block.size();
    auto* views = static_cast<View*>(scratch.take(whole.size() * sizeof(View)));
    std::uninitialized_copy(whole.begin(), whole.end(), views);
    const std::span<const View> all(views, whole.size());
    const std::size_t inputs = node.inputs.size();
    const KernelArgs args{.attrs = node.attrs,
                          .in = all.first(inputs),
                          .out = all.subspan(inputs),
                          .replica_context = context_.of_replica(0),
                          .scratch = scratch,
                          .far_operands = true};
    auto* blocks = static_cast<const std::byte**>(scratch.take(inputs * sizeof(std::byte*)));
    for (std::size_t k = 0; k < inputs; ++k) blocks[k] = sum_of(node.inputs[k], results);
    const auto update_piece = [&](std::int64_t at, std::int64_t in_block, std::int64_t count) {
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (k < inputs && whole[k].size() != size) continue;  // a number
        views[k].shape = {count};
        const auto item = std::int64_t(size_of(whole[k].dtype));
        if (k < inputs && !blocks[k] && in_block + count < some.end) {
          // The next row is a whole row of the weights away; the kernel fetches the rest of it.
          prefetch_bytes(whole[k].as<std::byte>() + (at + columns()) * item, block.columns * item,
                         thresholds().fused_block * item);
        }
        views[k].data = k < inputs && blocks[k]
                            ? const_cast<std::byte*>(blocks[k]) + (in_block - some.begin) * item
                            : whole[k].as<std::byte>() + at * item;
      }
      call_kernel(node, args, [&] { node.op->kernel(args); });
    };
    for_each_piece(block, columns(), {some.begin, some.end}, update_piece);
  }

  // The block of the sum that the operand is, or null.
  const std::byte* sum_of(Value operand, std::byte* const* results) const {
    for (std::size_t s = 0; s < step_.sums.size(); ++s) {
      if (step_.sums[s].result == operand) return results[s];
    }
    return nullptr;
  }

  const Plan& plan_;
  const BlockUpdateStep& step_;
  UpdateBinding& binding_;
  const ExecuteParams& call_;
  ExecutionContext& context_;
  std::int64_t work_ = 0;  // a rough count of operations
  // The blocks and buckets of sums over processes.
  std::optional<TileSet> all_;
  std::vector<BlockBucket> buckets_;
};

}  // namespace

bool can_share(const UpdateBinding& binding, const WorldSums& world) {
  const TileSet all = blocks_in_world(binding, world);
  if (all.cuts() == 0) return false;
  std::int64_t bytes = 0;  // of a bucket that has one block of each sum; the first is the largest
  for (const UpdateBinding::Sum& sum : binding.sums) {
    bytes += aligned(all.cut(0).size() * std::int64_t(size_of(sum.reduction.dtype)));
  }
  return bytes <= world.shared_bytes();
}

void run_step(const BlockUpdateStep& step, const StepRun& run) {
  const ExecuteParams& call = run.call;
  ExecutionContext& context = run.context;
  auto& binding = context.binding<UpdateBinding>(run.step);
  const bool here = !call.communicator || !step.has_replicas();
  if (here) return BlockwiseUpdate(run.plan, step, binding, call, context).run();
  BlockwiseUpdate::start(std::make_shared<BlockwiseUpdate>(run.plan, step, binding, call, context),
                         context.world_sums());
}

}  // namespace samegrad
