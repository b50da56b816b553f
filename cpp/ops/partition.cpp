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

bool has_rows_of(const View& x, const View& y) {
  return x.shape.rank() == y.shape.rank() && x.shape[0] != 1;
}

}  // namespace

View elements_of(const View& view, std::int64_t begin, std::int64_t end) {
  View part = view;
  part.shape = {end - begin};
  if (view.data) part.data = view.as<std::byte>() + begin * std::int64_t(size_of(view.dtype));
  return part;
}

View rows_of(const View& view, std::int64_t begin, std::int64_t end) {
  View part = view;
  const std::int64_t row =
      view.shape.size(1, view.shape.rank()) * std::int64_t(size_of(view.dtype));
  part.shape[0] = end - begin;
  if (view.data) part.data = view.as<std::byte>() + begin * row;
  return part;
}

std::int64_t count_of_elementwise(const CostArgs& args) {
  const View& y = args.out[0];
  if (args.in.size() + 1 > kMaxViews) return 1;
  if (lies_flat(args.in, y)) return y.size();
  const bool by_rows = y.shape.rank() > 1 && std::ranges::all_of(args.in, [&](const View& x) {
                         return !has_rows_of(x, y) || x.shape[0] == y.shape[0];
                       });
  return by_rows ? y.shape[0] : 1;
}

std::int64_t count_along_last_axis(const CostArgs& args) {
  const View& y = args.out[0];
  return y.shape.rank() > 1 ? y.shape[0] : 1;
}

void run_on_views(Kernel kernel, const KernelArgs& args, std::int64_t count, std::int64_t begin,
                  std::int64_t end) {
  const View& y = args.out[0];
  if (begin == 0 && end == count) return kernel(args);
  const bool flat = count == y.size() && lies_flat(args.in, y);
  std::array<View, kMaxViews> views;
  const auto part_of = [&](const View& view) {
    if (flat) return view.size() == 1 ? view : elements_of(view, begin, end);
    return has_rows_of(view, y) ? rows_of(view, begin, end) : view;
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
