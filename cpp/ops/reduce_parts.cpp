// Parallel partition of a reduction: by results, or, if these are few, by the subtrees of the
// reduction order of a result.
#include <cstring>

#include "base/reduction_order.h"
#include "ops/attributes.h"
#include "ops/reduce_kernel.h"

namespace samegrad {
namespace {

// The innermost pass, which reads the operand, as it is shared.
struct SharedPass {
  ReducePass pass;
  int levels = 0;  // of subtrees; 0: by results

  explicit SharedPass(const CostArgs& args) {
    const View& x = args.in[0];
    const std::uint32_t mask =
        axes_mask("reduce", args.attrs.as<ReduceAttrs>().axes, x.shape.rank());
    pass = innermost_pass(AxisGroups(x.shape, mask));
    if (!pass.reduces) return;
    const std::int64_t n = pass.lines.n;
    levels = levels_of(pass.lines, pass.by_lanes ? kRowTree.units(n) : kColumnTree.units(n));
  }

  std::int64_t count() const {
    return levels > 0 ? pass.lines.outer << levels : pass.lines.count();
  }
  // The elements of the state that the units leave for the end.
  std::int64_t state_elements() const {
    if (levels > 0) return count() * pass.lines.columns;
    return pass.rest.any_reduced() ? count() : 0;
  }

  // The elements of a line that a subtree has.
  TreeRange subtree(std::int64_t i) const {
    const TreeRange all{0, pass.lines.n};
    return pass.by_lanes ? kRowTree.subtree(all, levels, i) : kColumnTree.subtree(all, levels, i);
  }
};

void reduce_subtrees(ReduceFn fn, const SharedPass& shared, const View& x, std::byte* y,
                     std::int64_t begin, std::int64_t end) {
  const Lines& lines = shared.pass.lines;
  const auto item = std::int64_t(size_of(x.dtype));
  const std::int64_t subtrees = std::int64_t(1) << shared.levels;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t o = unit / subtrees;
    const TreeRange subtree = shared.subtree(unit % subtrees);
    Lines part = lines;
    part.outer = 1;
    part.n = subtree.size();
    reduce_lines(fn, x.dtype, shared.pass.by_lanes, part, 0, lines.columns,
                 x.as<std::byte>() + (o * lines.n + subtree.begin) * lines.columns * item,
                 y + unit * lines.columns * item);
  }
}

// Joins neighbours, level by level. The results are then where a state without subtrees has them.
void join_subtrees(ReduceFn fn, const SharedPass& shared, DType dtype, std::byte* state) {
  const Lines& lines = shared.pass.lines;
  const std::int64_t bytes = lines.columns * std::int64_t(size_of(dtype));
  const ColumnReduceKernel join = kernels().column_reduce(fn, dtype);
  join_levels(shared.count(), shared.levels, [&](std::int64_t left, std::int64_t right) {
    join(state + right * bytes, state + left * bytes, 1, lines.columns, lines.columns, true);
  });
  for (std::int64_t o = 1; bytes > 0 && o < lines.outer; ++o) {
    std::memmove(state + o * bytes, state + (o << shared.levels) * bytes, std::size_t(bytes));
  }
}

}  // namespace

std::int64_t parts_of_reduction(const CostArgs& args) {
  return SharedPass(args).count();
}

std::size_t state_of_reduction(const CostArgs& args) {
  return std::size_t(SharedPass(args).state_elements()) * size_of(args.in[0].dtype);
}

std::size_t scratch_of_reduction(const CostArgs& args) {
  const View& x = args.in[0];
  const std::uint32_t mask = axes_mask("reduce", args.attrs.as<ReduceAttrs>().axes, x.shape.rank());
  std::size_t bytes = 0;
  for (AxisGroups groups(x.shape, mask); groups.any_reduced();) {
    const ReducePass pass = innermost_pass(groups);
    groups = pass.rest;
    if (groups.any_reduced()) {
      bytes += std::size_t(pass.lines.count()) * size_of(x.dtype) + kAlignment;
    }
  }
  return bytes;
}

void run_reduction_parts(ReduceFn fn, const KernelArgs& args, std::int64_t begin,
                         std::int64_t end) {
  const View& x = args.in[0];
  const SharedPass shared(cost_args(args));
  const Lines& lines = shared.pass.lines;
  std::byte* y = args.state ? args.state : args.out[0].as<std::byte>();
  const auto item = std::int64_t(size_of(x.dtype));
  if (!shared.pass.reduces) {
    std::memcpy(y + begin * item, x.as<std::byte>() + begin * item,
                std::size_t((end - begin) * item));
    return;
  }
  if (shared.levels > 0) return reduce_subtrees(fn, shared, x, y, begin, end);
  lines.for_each(begin, end,
                 [&](std::int64_t o, std::int64_t outer, std::int64_t column, std::int64_t width) {
                   Lines part = lines;
                   part.outer = outer;
                   reduce_lines(fn, x.dtype, shared.pass.by_lanes, part, column, width,
                                x.as<std::byte>() + o * lines.n * lines.columns * item,
                                y + o * lines.columns * item);
                 });
}

void finish_reduction(ReduceFn fn, const KernelArgs& args) {
  if (!args.state) return;
  const SharedPass shared(cost_args(args));
  const View& y = args.out[0];
  join_subtrees(fn, shared, y.dtype, args.state);
  reduce_groups(fn, y.dtype, shared.pass.rest, args.state, y.data, args.scratch);
}

}  // namespace samegrad
