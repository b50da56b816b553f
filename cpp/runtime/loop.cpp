// The loop over a replica's examples: tiles go through all nodes while they are in cache, tree
// reductions are summed on the way.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "kernels/table.h"
#include "runtime/executor.h"
#include "runtime/threads.h"
#include "tensor/tree.h"

namespace samegrad {
namespace {

void add_arrays(const Node& node, const ValueType& type, std::byte* sum, const std::byte* other) {
  const BinaryKernel kernel = kernels().binary(node.op->combine, type.dtype);
  kernel(sum, other, sum, type.shape.size(), 1, 1);
}

// One task: a chunk of a replica's examples.
class ChunkRun {
 public:
  ChunkRun(const Plan& plan, const Loop& loop, const LoopLayout& layout, const Call& call,
           Context& context, const Chunk& chunk, Scratch& scratch, std::vector<View>& views)
      : plan_(plan),
        loop_(loop),
        layout_(layout),
        call_(call),
        context_(context),
        chunk_(chunk),
        scratch_(scratch),
        views_(views),
        levels_(tree_levels(chunk.end - chunk.begin, layout.tile_examples)) {
    tile_ = static_cast<std::byte*>(scratch.take(std::size_t(layout.tile_bytes)));
    partials_ = static_cast<std::byte*>(
        scratch.take(std::size_t(layout.level_bytes) * std::size_t(levels_)));
    producers_.resize(loop.trees.size());
    for (std::size_t t = 0; t < loop.trees.size(); ++t)
      producers_[t] = plan.graph.producer(loop.trees[t]);
  }

  void run() {
    walk_tree(
        chunk_.begin, chunk_.end, layout_.tile_examples, 0,
        [&](std::int64_t begin, std::int64_t end, int level) { run_tile(begin, end, level); },
        [&](int level) {
          for (std::size_t t = 0; t < loop_.trees.size(); ++t) {
            add_arrays(*producers_[t], plan_.graph.type(loop_.trees[t]), tree(t, level),
                       tree(t, level + 1));
          }
        });
  }

 private:
  std::byte* tree(std::size_t t, int level) const {
    if (level == 0) return chunk_.trees[t];
    return partials_ + std::size_t(level) * std::size_t(layout_.level_bytes) +
           std::size_t(layout_.tree_offsets[t]);
  }

  void run_tile(std::int64_t begin, std::int64_t end, int level) {
    auto inner = loop_.inner.begin();
    for (std::size_t p = 0; p < layout_.nodes.size();) {
      if (inner == loop_.inner.end() || std::size_t(inner->begin) != p) {
        run_node(layout_.nodes[p++], begin, begin, end, level, false);
        continue;
      }
      for (std::int64_t example = begin; example < end || example == begin; ++example) {
        const std::int64_t stop = std::min(example + 1, end);
        for (std::int32_t q = inner->begin; q < inner->end; ++q) {
          run_node(layout_.nodes[std::size_t(q)], begin, example, stop, level, example > begin);
        }
      }
      p = std::size_t(inner->end);
      ++inner;
    }
  }

  std::byte* address(const Operand& operand, std::int64_t tile_begin, std::int64_t begin,
                     int level) const {
    if (operand.type_only) return nullptr;
    if (operand.tree >= 0) return tree(std::size_t(operand.tree), level);
    if (operand.tile_offset >= 0) {
      const std::int64_t first = operand.inner ? 0 : begin - tile_begin;
      return tile_ + operand.tile_offset + first * operand.stride;
    }
    return context_.base(chunk_.replica, operand.root) + begin * operand.stride;
  }

  void run_node(const LoopNode& code, std::int64_t tile_begin, std::int64_t begin, std::int64_t end,
                int level, bool accumulate) const {
    if (code.skip) return;
    View* views = views_.data() + code.first_view;
    for (std::size_t k = 0; k < code.operands.size(); ++k) {
      const Operand& operand = code.operands[k];
      if (operand.rows) views[k].shape[0] = operand.rows * (end - begin);
      views[k].data = address(operand, tile_begin, begin, level);
    }
    const auto inputs = std::size_t(code.inputs);
    const std::span<const View> out(views + inputs, code.operands.size() - inputs);
    const void* prepared =
        code.prepared_slot < 0 ? nullptr : context_.prepared(code.prepared_slot, chunk_.replica);
    const Scratch::Frame frame(scratch_);
    code.node->op->kernel({.attrs = code.node->attrs,
                           .in = {views, inputs},
                           .out = out,
                           .examples = end - begin,
                           .first_example = begin,
                           .symbol = loop_.symbol,
                           .facts = context_.facts(chunk_.replica),
                           .accumulate = accumulate,
                           .prepared = prepared,
                           .scratch = scratch_});
    if (call_.check_finite) {
      for (const View& result : out)
        check_finite(call_.locations, *code.node, result, chunk_.replica);
    }
  }

  const Plan& plan_;
  const Loop& loop_;
  const LoopLayout& layout_;
  const Call& call_;
  Context& context_;
  const Chunk& chunk_;
  Scratch& scratch_;
  std::vector<View>& views_;
  int levels_;
  std::byte* tile_;
  std::byte* partials_;
  std::vector<const Node*> producers_;
};

// Joins the chunks of one replica in the order of the tree above them.
void join_chunks(const Plan& plan, const Loop& loop, const LoopBinding& binding, int replica) {
  const auto first = std::size_t(binding.first_chunk[std::size_t(replica)]);
  const auto last = std::size_t(binding.first_chunk[std::size_t(replica) + 1]);
  if (last - first < 2) return;
  std::array<std::size_t, 64> at;
  std::size_t next = first;
  walk_tree(
      0, binding.chunks[last - 1].end, binding.chunk_examples, 0,
      [&](std::int64_t, std::int64_t, int level) { at[std::size_t(level)] = next++; },
      [&](int level) {
        const Chunk& left = binding.chunks[at[std::size_t(level)]];
        const Chunk& right = binding.chunks[at[std::size_t(level) + 1]];
        for (std::size_t t = 0; t < loop.trees.size(); ++t) {
          add_arrays(*plan.graph.producer(loop.trees[t]), plan.graph.type(loop.trees[t]),
                     left.trees[t], right.trees[t]);
        }
      });
}

}  // namespace

void prepare_operands(const Plan& plan, const PlanStep& step, Context& context) {
  const Graph& graph = plan.graph;
  for (const Prepared& prepared : step.prepare) {
    const Node& node = graph.nodes[std::size_t(prepared.node)];
    const int copies = graph.varying(prepared.operand) ? context.replicas() : 1;
    for (int r = 0; r < copies; ++r) {
      std::vector<View> in;
      for (Value value : node.inputs) {
        in.push_back(
            view_of_example(graph.type(value), context.base(r, plan.root[std::size_t(value)])));
      }
      node.op->prepare(in, node.attrs, context.prepared(prepared.slot, r));
    }
  }
}

void run_loop(const Plan& plan, std::int32_t index, const LoopLayout& layout, const Call& call,
              Context& context) {
  const Loop& loop = plan.loops[std::size_t(index)];
  const LoopBinding& binding = context.loop(index);
  const auto run_chunk = [&](std::int64_t i, Task& task) {
    const Scratch::Frame frame(task.scratch);
    ChunkRun(plan, loop, layout, call, context, binding.chunks[std::size_t(i)], task.scratch,
             task.loop_views[std::size_t(index)])
        .run();
  };
  const auto chunks = std::int64_t(binding.chunks.size());
  const auto replicas = std::int64_t(binding.first_chunk.size()) - 1;
  if (!binding.parallel) {
    for (std::int64_t i = 0; i < chunks; ++i) run_chunk(i, context.main_task());
    for (std::int64_t r = 0; r < replicas; ++r) join_chunks(plan, loop, binding, int(r));
    return;
  }
  parallel_loops().run(chunks, [&](std::int64_t i) {
    const Context::Lease lease(context);
    run_chunk(i, *lease);
  });
  parallel_loops().run(replicas, [&](std::int64_t r) { join_chunks(plan, loop, binding, int(r)); });
}

}  // namespace samegrad
