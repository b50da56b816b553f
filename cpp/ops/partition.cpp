#include "ops/partition.h"

#include <array>

namespace samegrad {
namespace {

constexpr std::size_t kMaxViews = 8;

// By elements, where the views are alike.
bool lies_flat(std::span<const View> in, const View& y) {
  return std::ranges::all_of(in,
                             [&](const View& x) { return x.size() == y.size() || x.size() == 1; });
}

// The axis of a result whose rows are the units: the first with more than one, or the last.
int divided_axis(const View& y) {
  int axis = 0;
  while (axis + 1 < y.shape.rank() && y.shape[axis] == 1) ++axis;
  return axis;
}

// The axis of an operand that broadcasting aligns with an axis of the result; -1: it has none, or
// is repeated along it.
int aligned_axis(const View& x, const View& y, int axis) {
  const int own = axis - (y.shape.rank() - x.shape.rank());
  return own >= 0 && x.shape[own] != 1 ? own : -1;
}

View rows_along(const View& view, int axis, std::int64_t begin, std::int64_t end) {
  View part = view;
  const std::int64_t row =
      view.shape.size(axis + 1, view.shape.rank()) * std::int64_t(size_of(view.dtype));
  part.shape[axis] = end - begin;
  if (view.data) part.data = view.as<std::byte>() + begin * row;
  return part;
}

}  // namespace

View elements_of(const View& view, std::int64_t begin, std::int64_t end) {
  View part = view;
  part.shape = {end - begin};
  if (view.data) part.data = view.as<std::byte>() + begin * std::int64_t(size_of(view.dtype));
  return part;
}

View rows_of(const View& view, std::int64_t begin, std::int64_t end) {
  return rows_along(view, 0, begin, end);
}

std::int64_t count_of_elementwise(const CostArgs& args) {
  const View& y = args.out[0];
  if (args.in.size() + 1 > kMaxViews) return 1;
  if (lies_flat(args.in, y)) return y.size();
  const int axis = divided_axis(y);
  const bool by_rows = y.shape.rank() > 1 && std::ranges::all_of(args.in, [&](const View& x) {
                         const int own = aligned_axis(x, y, axis);
                         return own < 0 || x.shape[own] == y.shape[axis];
                       });
  return by_rows ? y.shape[axis] : 1;
}

void run_on_views(Kernel kernel, const KernelArgs& args, std::int64_t count, std::int64_t begin,
                  std::int64_t end) {
  const View& y = args.out[0];
  if (begin == 0 && end == count) return kernel(args);
  const bool flat = count == y.size() && lies_flat(args.in, y);
  const int axis = divided_axis(y);
  std::array<View, kMaxViews> views;
  const auto part_of = [&](const View& view) {
    if (flat) return view.size() == 1 ? view : elements_of(view, begin, end);
    const int own = aligned_axis(view, y, axis);
    return own < 0 ? view : rows_along(view, own, begin, end);
  };
  std::ranges::transform(args.in, views.begin(), part_of);
  views[args.in.size()] = part_of(y);
  const std::span<const View> all(views.data(), args.in.size() + 1);
  kernel({.attrs = args.attrs,
          .in = all.first(args.in.size()),
          .out = all.last(1),
          .replica_context = args.replica_context,
          .scratch = args.scratch});
}

int levels_of(const Lines& lines, std::int64_t blocks) {
  constexpr std::int64_t kEnough = 64, kColumns = 1024;
  int levels = 0;
  if (lines.columns >= kColumns) return levels;
  while ((lines.outer << levels) < kEnough && (std::int64_t(2) << levels) <= blocks) ++levels;
  return levels;
}

}  // namespace samegrad
