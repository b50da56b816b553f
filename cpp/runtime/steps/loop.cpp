// The loop over a replica's examples: tiles go through all nodes while they are in cache, tree
// reductions are folded on the way.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/table.h"
#include "runtime/check_kernel.h"
#include "runtime/executor.h"
#include "runtime/hashes.h"
#include "runtime/shared_call.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

// One task: a chunk of a list of examples.
class ChunkRun {
 public:
  // With loops, their threads share each node.
  ChunkRun(const LoopStep& loop, const StepRun& run, const LoopBinding& binding, const Chunk& chunk,
           Task& task, const ParallelFor* loops = nullptr)
      : loop_(loop),
        layout_(run.context.layout(run.step)),
        call_(run.call),
        context_(run.context),
        replica_(loop.joint ? 0 : chunk.list),
        replica_context_(loop.joint ? run.context.of_joint() : run.context.of_replica(replica_)),
        bases_(run.context.bases(replica_)),
        binding_(binding),
        chunk_(chunk),
        loops_(loops),
        scratch_(task.scratch),
        views_(task.loop_views[run.step]),
        trees_(task.trees) {
    tile_ = static_cast<std::byte*>(scratch_.take(std::size_t(layout_.tile_bytes)));
    auto* partials = static_cast<std::byte*>(scratch_.take(std::size_t(chunk.partial_bytes)));
    trees_.clear();
    for (std::size_t t = 0; t < layout_.trees.size() && chunk.list >= 0; ++t) {
      const TreeReduction& tree = layout_.trees[t];
      const Accumulator state = tree.whole.at(context_.at(chunk.trees[t]));
      for (std::size_t b = first_block(t); b < first_block(t + 1); ++b) {
        const TileSet& extent = binding.blocks[b];
        trees_.emplace_back(tree, extent, chunk.begin, chunk.end,
                            loops ? tree.whole.part(state, extent.block) : state,
                            partials + chunk.partials[b]);
      }
#ifdef SAMEGRAD_ASSERTIONS
      if (!checks_kernels()) continue;
      checks_[int(t)] = std::make_unique<TreeCheck>(tree, chunk.begin, chunk.end);
#endif
    }
  }

  // Tiles are subtrees: many a tree is folded a whole tile at a time.
  void run() {
    for_each_leaf(Halving<>{layout_.tile_examples}, {chunk_.begin, chunk_.end},
                  [&](const TreeStep& tile) { run_tile(tile.range.begin, tile.range.end); });
#ifdef SAMEGRAD_ASSERTIONS
    for (const auto& [t, check] : checks_) {
      check->compare(
          *context_.plan().graph.producer(loop_.trees[std::size_t(t)]),
          layout_.trees[std::size_t(t)].whole.at(context_.at(chunk_.trees[std::size_t(t)])));
    }
#endif
  }

 private:
  void run_tile(std::int64_t begin, std::int64_t end) {
    auto inner = loop_.inner.begin();
    for (std::size_t p = 0; p < layout_.nodes.size();) {
      if (inner == loop_.inner.end() || std::size_t(inner->begin) != p) {
        run_on_tile(layout_.nodes[p++], begin, begin, end);
        continue;
      }
      for (std::int64_t example = begin; example < end || example == begin; ++example) {
        const std::int64_t stop = std::min(example + 1, end);
        for (std::int32_t q = inner->begin; q < inner->end; ++q) {
          run_on_tile(layout_.nodes[std::size_t(q)], begin, example, stop);
        }
      }
      p = std::size_t(inner->end);
      ++inner;
    }
  }

  std::byte* address(const Operand& operand, std::int64_t tile_begin, std::int64_t begin) const {
    if (operand.type_only) return nullptr;
    if (operand.tile_offset >= 0) {
      const std::int64_t first = operand.inner ? 0 : begin - tile_begin;
      return tile_ + operand.tile_offset + first * operand.stride;
    }
    return bases_[operand.root.index()] + begin * operand.stride;
  }

  void run_on_tile(const LoopNode& code, std::int64_t tile_begin, std::int64_t begin,
                   std::int64_t end) {
    if (code.skip || (code.tree >= 0 && (begin == end || chunk_.list < 0))) return;
    View* views = views_.data() + code.first_view;
    for (std::size_t k = 0; k < code.operands.size(); ++k) {
      const Operand& operand = code.operands[k];
      if (operand.rows) views[k].shape[0] = operand.rows * (end - begin);
      views[k].data = address(operand, tile_begin, begin);
    }
    const auto inputs = std::size_t(code.inputs);
    const std::span<const View> out(views + inputs, code.operands.size() - inputs);
    const void* prepacked =
        code.prepacked_slot < 0 ? nullptr : context_.prepacked(code.prepacked_slot, replica_);
    const Scratch::Frame frame(scratch_);
    const KernelArgs args{.attrs = code.node->attrs,
                          .in = {views, inputs},
                          .out = out,
                          .examples = end - begin,
                          .first_example = begin,
                          .symbol = loop_.symbol,
                          .replica_context = replica_context_,
                          .prepacked = prepacked,
                          .scratch = scratch_,
                          .parallel = loops_};
    if (code.tree >= 0) {
      return run_located(*code.node, [&] {
        const void* operands = code.node->op->tree.open(args);
        fold(std::size_t(code.tree), operands, begin, end);
#ifdef SAMEGRAD_ASSERTIONS
        if (checks_kernels()) checks_[code.tree]->feed(operands, begin, begin, end, scratch_);
#endif
      });
    }
    call_kernel(*code.node, args, [&] { run_shared(*code.node, args); });
    if (call_.check_finite) {
      const auto replica = [&](std::int64_t example) {
        return replica_of(replica_context_, loop_.symbol, begin + example);
      };
      for (const View& result : out) check_finite(*code.node, result, end - begin, replica);
    }
    if (call_.hashes) [[unlikely]] {
      call_.hashes->add_tile(*code.node, out, begin, end, call_, replica_context_);
    }
  }

  std::size_t first_block(std::size_t tree) const {
    return std::size_t(binding_.first_block[tree]);
  }

  // Adds examples to a tree, block by block where threads share it.
  void fold(std::size_t tree, const void* operands, std::int64_t begin, std::int64_t end) {
    if (!loops_) return trees_[tree].feed(operands, begin, begin, end, scratch_);
    const std::span blocks =
        std::span(trees_).subspan(first_block(tree), first_block(tree + 1) - first_block(tree));
    if (blocks.size() == 1) return blocks[0].feed(operands, begin, begin, end, scratch_);
    loops_->run(std::ssize(blocks), [&](std::int64_t i) {
      Scratch own;
      blocks[std::size_t(i)].feed(operands, begin, begin, end, own);
    });
  }

  const LoopStep& loop_;
  const LoopLayout& layout_;
  const ExecuteParams& call_;
  const ExecutionContext& context_;
  const int replica_;  // of a joint loop, the first one
  const ReplicaContext& replica_context_;
  std::byte* const* const bases_;
  const LoopBinding& binding_;
  const Chunk& chunk_;
  const ParallelFor* const loops_;
  Scratch& scratch_;
  std::vector<View>& views_;
  std::byte* tile_;
  std::vector<TreeAccumulator>& trees_;  // per LoopBinding::blocks
#ifdef SAMEGRAD_ASSERTIONS
  std::map<int, std::unique_ptr<TreeCheck>> checks_;  // of some trees
#endif
};

// Joins the chunks of one list in the order of the tree above them.
void join_chunks(const LoopLayout& layout, const LoopBinding& binding, const Join& join,
                 const ExecutionContext& context) {
  const TreeReduction& tree = layout.trees[join.tree];
  const auto first = std::size_t(binding.first_chunk[std::size_t(join.list)]);
  const auto last = std::size_t(binding.first_chunk[std::size_t(join.list) + 1]);
  std::array<std::size_t, kMaxTreeLevels> at;
  std::size_t next = first;
  const auto state = [&](std::size_t chunk) {
    return tree.whole.part(tree.whole.at(context.at(binding.chunks[chunk].trees[join.tree])),
                           join.block);
  };
  walk_tree(
      Halving<>{binding.chunk_examples},
      TreeRange{binding.chunks[first].begin, binding.chunks[last - 1].end},
      [&](TreeRange, int level) { at[std::size_t(level)] = next++; },
      [&](int level) {
        tree.combine(join.block, state(at[std::size_t(level)]), state(at[std::size_t(level) + 1]));
      });
}

// The results of the trees of one list.
void finish_trees(const Plan& plan, const LoopStep& loop, const LoopLayout& layout,
                  const ExecuteParams& call, const Chunk& first, ExecutionContext& context) {
  for (std::size_t t = 0; t < layout.trees.size(); ++t) {
    const TreeReduction& tree = layout.trees[t];
    if (!tree.kernel->finish && !call.check_finite) continue;
    const ValueType& type = plan.graph.type(loop.trees[t]);
    const std::int64_t offset = loop.joint ? first.list * context.sum_stride(loop.trees[t]) : 0;
    std::byte* const memory = context.base(loop.joint ? 0 : first.list, loop.trees[t]) + offset;
    const View result = view_of(type, type.shape, memory);
    const Node& node = *plan.graph.producer(loop.trees[t]);
    if (tree.kernel->finish) {
      const Accumulator state = tree.whole.at(context.at(first.trees[t]));
      tree.kernel->finish({node.attrs, tree.state, state, {&result, 1}});
    }
    if (!call.check_finite) continue;
    check_finite(node, result, context.of_replica(loop.joint ? 0 : first.list).replica);
  }
}

}  // namespace

namespace {

// One operand of a replica that a step packs.
struct PackTask {
  const Prepacked& prepacked;
  int replica;
};

// Packs a part of so many of an operand's columns.
void pack_part(const PackTask& task, std::int64_t part, std::int64_t parts, const StepRun& run) {
  const auto& [prepacked, replica] = task;
  ExecutionContext& context = run.context;
  const Node& node = run.plan.graph.nodes[prepacked.node];
  const auto& sources = context.sources(prepacked.slot);
  if (sources.size() > 1 && !run.call.runs(replica)) return;
  const Prepacking& prepacking = node.op->prepacking;
  const std::vector<View>& source = sources[std::size_t(replica)];
  std::int64_t begin = 0, end = std::numeric_limits<std::int64_t>::max();
  if (prepacked.kept) {  // packed as a whole by the first iteration
    const auto at = std::size_t(prepacked.slot) * std::size_t(context.replicas());
    if (part > 0 || std::exchange(run.call.iterations->made[at + std::size_t(replica)], 1)) return;
  } else if (parts > 1) {
    const std::int64_t columns = prepacking.columns(source, node.attrs);
    const std::int64_t grains = divide_up(columns, kProductColumnGrain);
    begin = grains * part / parts * kProductColumnGrain;
    end = std::min(columns, grains * (part + 1) / parts * kProductColumnGrain);
    if (begin >= end) return;
  }
  prepacking.run(source, node.attrs, begin, end, context.prepacked(prepacked.slot, replica));
}

}  // namespace

void prepack_operands(const StepBase& step, const StepRun& run) {
  ExecutionContext& context = run.context;
  std::int64_t items = 0, bytes = 0;
  for (const Prepacked& prepacked : step.prepack) {
    const std::vector<std::vector<View>>& sources = context.sources(prepacked.slot);
    const Node& node = run.plan.graph.nodes[prepacked.node];
    const View& operand = sources[0][std::size_t(node.op->prepacking.operand)];
    items += std::int64_t(sources.size());
    bytes += std::int64_t(sources.size()) * operand.size() * std::int64_t(size_of(operand.dtype));
  }
  const auto task_of = [&](std::int64_t i) -> PackTask {
    auto prepacked = step.prepack.begin();
    for (; i >= std::int64_t(context.sources(prepacked->slot).size()); ++prepacked) {
      i -= std::int64_t(context.sources(prepacked->slot).size());
    }
    return {*prepacked, int(i)};
  };
  const ParallelFor& loops = parallel_loops();
  if (loops.threads() == 1 || bytes < thresholds().parallel_replica_bytes) {
    for (std::int64_t i = 0; i < items; ++i) pack_part(task_of(i), 0, 1, run);
    return;
  }
  const std::int64_t parts = thresholds().parts_per_thread * loops.threads();
  loops.run(items * parts,
            [&](std::int64_t i) { pack_part(task_of(i / parts), i % parts, parts, run); });
}

namespace {

// Runs the loop over a list's rows of the active replicas: a branch that some replicas take has no
// sum over all.
void run_active(const LoopStep& loop, const StepRun& run) {
  const ExecuteParams& call = run.call;
  ExecutionContext& context = run.context;
  const auto& binding = context.binding<LoopBinding>(run.step);
  SG_ASSERT(loop.trees.empty(), "a sum over replicas that do not all come here");
  std::int64_t begin = 0;
  for (int r = 0; r < context.replicas(); ++r) {
    const std::int64_t end = begin + context.of_replica(r).local_examples[std::size_t(loop.symbol)];
    const Scratch::Frame frame(context.main_task().scratch);
    const Chunk chunk{-1, begin, end, {}, {}, 0};
    if (call.runs(r)) ChunkRun(loop, run, binding, chunk, context.main_task()).run();
    begin = end;
  }
}

}  // namespace

void run_step(const LoopStep& loop, const StepRun& run) {
  const ExecuteParams& call = run.call;
  ExecutionContext& context = run.context;
  const LoopBinding& binding = context.binding<LoopBinding>(run.step);
  const LoopLayout& layout = context.layout(run.step);
  if (loop.joint && !call.runs_all()) return run_active(loop, run);
  const auto runs = [&](int list) { return !loop.varying || loop.joint || call.runs(list); };
  const auto run_chunk = [&](std::int64_t i, Task& task) {
    const Chunk& chunk = binding.chunks[std::size_t(i)];
    if (!runs(chunk.list)) return;
    const Scratch::Frame frame(task.scratch);
    ChunkRun(loop, run, binding, chunk, task, binding.wide ? &parallel_loops() : nullptr).run();
  };
  const auto chunks = std::int64_t(binding.chunks.size());
  const auto finish = [&](std::int64_t r) {
    if (!runs(int(r))) return;
    const auto first = std::size_t(binding.first_chunk[std::size_t(r)]);
    finish_trees(run.plan, loop, layout, call, binding.chunks[first], context);
  };
  const auto join = [&](std::int64_t i) {
    const Join& piece = binding.joins[std::size_t(i)];
    if (runs(piece.list)) join_chunks(layout, binding, piece, context);
  };
  const auto lists = std::int64_t(binding.first_chunk.size()) - 1;
  if (!binding.parallel || binding.wide) {
    for (std::int64_t i = 0; i < chunks; ++i) run_chunk(i, context.main_task());
  } else {
    parallel_loops().run(chunks, [&](std::int64_t i) {
      const ExecutionContext::TaskLease lease(context);
      run_chunk(i, *lease);
    });
  }
  if (!binding.parallel) {
    for (std::int64_t i = 0; i < std::int64_t(binding.joins.size()); ++i) join(i);
    for (std::int64_t r = 0; r < lists; ++r) finish(r);
    return;
  }
  (binding.parallel_joins ? parallel_loops() : serial_loops())
      .run(std::int64_t(binding.joins.size()), join);
  parallel_loops().run(lists, finish);
}

}  // namespace samegrad
