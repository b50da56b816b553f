// Nodes that run on whole replicas, and single ops for eager code.
#include <algorithm>

#include "base/float_environment.h"
#include "base/thresholds.h"
#include "kernels/table.h"
#include "plan/cost.h"
#include "runtime/check_kernel.h"
#include "runtime/executor.h"
#include "runtime/shared_call.h"
#include "runtime/threads.h"
#include "runtime/tree.h"

namespace samegrad {
namespace {

bool can_split(const Node& node, const std::vector<ValueType>& types) {
  if (node.locality != Locality::kPerExample) return false;
  return std::all_of(types.begin(), types.end(),
                     [](const ValueType& type) { return !type.batched() || type.batch.axis == 0; });
}

View rows_of(const View& view, const ValueType& type, std::int64_t begin, std::int64_t end) {
  if (!type.batched()) return view;
  View part = view;
  const std::int64_t rows = type.batch.rows_per_example;
  const std::int64_t row_bytes =
      view.shape.size(1, view.shape.rank()) * std::int64_t(size_of(view.dtype));
  part.shape[0] = (end - begin) * rows;
  if (part.data) part.data = static_cast<std::byte*>(view.data) + begin * rows * row_bytes;
  return part;
}

struct NodeCall {
  const Node& node;
  const std::vector<ValueType>& types;  // operands, then results
  std::span<const View> views;
  std::int64_t examples;
  int symbol;
  const ReplicaContext& replica_context;
  const ParallelFor& loops;
  const void* prepacked = nullptr;

  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const View& view : views) sum += view.size() * std::int64_t(size_of(view.dtype));
    return sum;
  }

  // The threads that a call may take; null: the caller's.
  const ParallelFor* parallel() const { return loops.threads() > 1 ? &loops : nullptr; }

  KernelArgs args(std::span<const View> v, std::int64_t count, std::int64_t first, Scratch& scratch,
                  const ParallelFor* parallel) const {
    const std::size_t inputs = node.inputs.size();
    return {.attrs = node.attrs,
            .in = v.first(inputs),
            .out = v.subspan(inputs),
            .examples = count,
            .first_example = first,
            .symbol = symbol,
            .replica_context = replica_context,
            .prepacked = prepacked,
            .scratch = scratch,
            .parallel = parallel};
  }

  void run(Scratch& scratch) const {
    SG_ASSERT(node.locality != Locality::kBatchReduction, node.op->name, " is a reduction");
    call_kernel(node, args(views, examples, 0, scratch, parallel()),
                [&] { run_in_parts(scratch); });
  }

 private:
  void run_in_parts(Scratch& scratch) const {
    const bool split = can_split(node, types) && loops.threads() > 1 && examples > 1 &&
                       bytes() > thresholds().parallel_operation_bytes;
    if (!split) return run_shared(node, args(views, examples, 0, scratch, parallel()));
    const std::int64_t parts =
        std::min<std::int64_t>(examples, loops.threads() * thresholds().parts_per_thread);
    loops.run(parts, [&](std::int64_t i) {
      const std::int64_t begin = examples * i / parts, end = examples * (i + 1) / parts;
      std::vector<View> part;
      for (std::size_t k = 0; k < views.size(); ++k) {
        part.push_back(rows_of(views[k], types[k], begin, end));
      }
      Scratch own;
      node.op->kernel(args(part, end - begin, begin, own, nullptr));
    });
  }
};

#ifdef SAMEGRAD_ASSERTIONS
void check_tree(const Node& node, const TreeReduction& reduction,
                std::span<const OpenExamples> parts, TreeRange range, const Accumulator& state,
                Scratch& scratch) {
  TreeCheck check(reduction, range.begin, range.end);
  std::int64_t first = 0;
  for (const OpenExamples& part : parts) {
    const std::int64_t begin = std::max(first, range.begin);
    const std::int64_t end = std::min(first + part.examples, range.end);
    if (begin < end) check.feed(part.operands, first, begin, end, scratch);
    first += part.examples;
  }
  check.compare(node, state);
}
#endif

// A reduction over a list of examples, whose operands are in one piece or in several: one result
// for each range of them, so many bytes after the other.
struct ListReduction {
  std::span<const std::vector<View>> pieces;
  std::span<const std::int64_t> examples;  // per piece
  std::span<const TreeRange> ranges;
  std::int64_t stride = 0;
};

void run_tree(const NodeCall& whole, const ListReduction& list, Scratch& scratch) {
  const Node& node = whole.node;
  const TreeKernel& tree = node.op->tree;
  const KernelArgs all = whole.args(whole.views, 0, 0, scratch, nullptr);
  const TreeReduction reduction(tree, node.attrs, all.in, all.out[0]);
  std::vector<OpenExamples> parts;
  std::int64_t work = 0;
  for (std::size_t i = 0; i < list.pieces.size(); ++i) {
    const std::int64_t examples = list.examples[i];
    const NodeCall piece{node,         whole.types,           list.pieces[i], examples,
                         whole.symbol, whole.replica_context, whole.loops};
    const KernelArgs args = piece.args(list.pieces[i], examples, 0, scratch, whole.parallel());
    parts.push_back({examples > 0 ? tree.open(args) : nullptr, examples});
    work += piece.bytes() / 4 + reduction.whole.block.size() * examples;
  }
  for (std::size_t i = 0; i < list.ranges.size(); ++i) {
    const Scratch::Frame frame(scratch);
    View out = all.out[0];
    out.data = out.as<std::byte>() + std::int64_t(i) * list.stride;
    auto* memory = out.as<std::byte>();
    if (tree.finish) {
      memory = static_cast<std::byte*>(scratch.take(std::size_t(reduction.whole.bytes)));
    }
    const Accumulator state = reduction.whole.at(memory);
    const auto [begin, end] = list.ranges[i];
    const bool splits = !node.op->has(kScatters);
    reduce_whole({reduction, parts, begin, end, state, splits, work}, whole.loops, scratch);
#ifdef SAMEGRAD_ASSERTIONS
    if (checks_kernels()) check_tree(node, reduction, parts, list.ranges[i], state, scratch);
#endif
    if (tree.finish) tree.finish({node.attrs, reduction.state, state, {&out, 1}});
  }
}

// One replica's copy of a node.
struct Copy {
  const Node& node;
  const NodeBinding& binding;
  std::int64_t replica;
  const void* prepacked = nullptr;
};

void run_copy(const Copy& copy, const ParallelFor& loops, const ExecuteParams& call,
              ExecutionContext& context, Task& task) {
  const auto& [node, binding, r, prepacked] = copy;
  if (binding.views.size() > 1 && !binding.joint && !call.runs(int(r))) return;
  // A replica's own value is made of no other process's examples.
  if (call.is_halo(int(r)) && binding.views.size() > 1 && !binding.makes_rows) return;
  const std::vector<View>& views = binding.views[std::size_t(r)];
  const Scratch::Frame frame(task.scratch);
  const NodeCall whole{node,
                       binding.types,
                       views,
                       binding.examples[std::size_t(r)],
                       std::max(binding.symbol, 0),
                       binding.joint ? context.of_joint() : context.of_replica(int(r)),
                       loops,
                       prepacked};
  if (node.locality == Locality::kBatchReduction) {
    const auto first = std::size_t(r), count = binding.joint ? binding.views.size() : 1;
    const TreeRange own{0, whole.examples};
    ListReduction list{std::span(binding.views).subspan(first, count),
                       std::span(binding.examples).subspan(first, count),
                       {&own, 1}};
    if (binding.joint) {
      list.ranges = context.subtrees(binding.symbol);
      list.stride = context.sum_stride(node.outputs[0]);
    }
    run_located(node, [&] { run_tree(whole, list, task.scratch); });
  } else {
    whole.run(task.scratch);
  }
  if (!call.check_finite) return;
  for (std::size_t k = node.inputs.size(); k < views.size(); ++k) {
    check_finite(node, views[k], context.of_replica(int(r)).replica);
  }
}

}  // namespace

void run_step(const NodeStep& step, const StepRun& run) {
  const ExecuteParams& call = run.call;
  ExecutionContext& context = run.context;
  const NodeId index = step.nodes[0];
  const Node& node = run.plan.graph.nodes[index];
  if (node.op->has(kAliases)) return;
  const NodeBinding& binding = context.node(index);
  const bool big = binding.most_bytes > thresholds().parallel_replica_bytes;
  const ParallelFor& loops = big ? parallel_loops() : serial_loops();
  const auto copies = binding.joint ? 1 : std::int64_t(binding.views.size());
  const std::int32_t slot = run.plan.prepacked_slot[index];
  const auto copy = [&](std::int64_t r) {
    return Copy{node, binding, r, slot < 0 ? nullptr : context.prepacked(slot, int(r))};
  };
  if (!big || copies == 1) {
    for (std::int64_t r = 0; r < copies; ++r) {
      run_copy(copy(r), loops, call, context, context.main_task());
    }
    return;
  }
  loops.run(copies, [&](std::int64_t r) {
    const ExecutionContext::TaskLease lease(context);
    run_copy(copy(r), loops, call, context, *lease);
  });
}

void run_step(const SideBySideStep& step, const StepRun& run) {
  const ExecuteParams& call = run.call;
  ExecutionContext& context = run.context;
  const auto run_piece = [&](std::size_t piece, Task& task) {
    const auto end = std::size_t(step.pieces[piece]);
    for (auto i = std::size_t(piece ? step.pieces[piece - 1] : 0); i < end; ++i) {
      const Node& node = run.plan.graph.nodes[step.nodes[i]];
      if (node.op->has(kAliases)) continue;
      run_copy({node, context.node(step.nodes[i]), 0}, serial_loops(), call, context, task);
    }
  };
  const std::size_t pieces = step.pieces.size();
  if (pieces < 2 || parallel_loops().threads() == 1) {
    for (std::size_t i = 0; i < pieces; ++i) run_piece(i, context.main_task());
    return;
  }
  parallel_loops().run(std::int64_t(pieces), [&](std::int64_t i) {
    const ExecutionContext::TaskLease lease(context);
    run_piece(std::size_t(i), *lease);
  });
}

namespace {

bool any_storage_dtype(const std::vector<ValueType>& types) {
  return std::ranges::any_of(types,
                             [](const ValueType& type) { return is_storage_dtype(type.dtype); });
}

Array converted(const Array& x, DType to) {
  if (x.dtype() == to) return x;
  Array y(to, x.shape());
  const FloatEnvironment environment;
  kernels().cast(x.dtype(), to)(x.raw(), y.raw(), x.shape().size());
  return y;
}

// Runs the node with promoted operands, like passes/promote_types.cpp.
std::vector<Array> run_promoted(const Node& node, std::vector<ValueType> in_types,
                                std::vector<ValueType> out_types, std::vector<Array> in,
                                const ReplicaContext& replica_context) {
  for (std::size_t k = 0; k < in.size(); ++k) {
    in_types[k].dtype = sum_type(in_types[k].dtype);
    in[k] = converted(in[k], in_types[k].dtype);
  }
  std::vector<DType> dtypes;
  for (ValueType& type : out_types) {
    dtypes.push_back(type.dtype);
    type.dtype = sum_type(type.dtype);
  }
  std::vector<Array> out = run_op(node, in_types, out_types, in, replica_context);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = converted(out[i], dtypes[i]);
  return out;
}

}  // namespace

std::vector<Array> run_op(const Node& node, const std::vector<ValueType>& in_types,
                          const std::vector<ValueType>& out_types, const std::vector<Array>& in,
                          const ReplicaContext& replica_context) {
  if (node.op->has(kAliases)) {
    return {in[0].reshaped(concrete_shape(out_types[0], replica_context.local_examples))};
  }
  if (computes(*node.op) && (any_storage_dtype(in_types) || any_storage_dtype(out_types))) {
    return run_promoted(node, in_types, out_types, in, replica_context);
  }
  std::vector<ValueType> types = in_types;
  types.insert(types.end(), out_types.begin(), out_types.end());
  int symbol = -1;
  for (const ValueType& type : types) {
    if (type.batched()) symbol = type.batch.symbol;
  }
  std::vector<View> views;
  std::vector<Array> out;
  for (std::size_t k = 0; k < in.size(); ++k) {
    views.push_back(view_of(in_types[k], in[k].shape(), in[k].raw()));
  }
  for (const ValueType& type : out_types) {
    out.emplace_back(type.dtype, concrete_shape(type, replica_context.local_examples));
    views.push_back(view_of(type, out.back().shape(), out.back().raw()));
  }
  const FloatEnvironment environment;
  Scratch scratch;
  const std::int64_t examples =
      symbol < 0 ? 0 : replica_context.local_examples[std::size_t(symbol)];
  const NodeCall whole{
      node, types, views, examples, std::max(symbol, 0), replica_context, parallel_loops()};
  if (node.locality == Locality::kBatchReduction) {
    const TreeRange own{0, examples};
    run_located(node, [&] { run_tree(whole, {{&views, 1}, {&examples, 1}, {&own, 1}}, scratch); });
  } else {
    whole.run(scratch);
  }
  return out;
}

}  // namespace samegrad
