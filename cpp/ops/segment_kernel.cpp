// The sum of values by index: the kernel and the tree of segment_sum.
#include <algorithm>
#include <cstring>

#include "ops/index_kernel.h"
#include "ops/segment_sum.h"

namespace samegrad {
namespace {

// The positions of indices, example by example, and the runs of equal indices. Rows without a
// position stay zero. Partial sums start from +0, so that adding a zero is exact. The tree over the
// dense result is therefore the tree over the rows that exist.
class SortedSegments : public SegmentPositions {
 public:
  // `examples` of them are on an axis of the indices.
  template <class I>
  static SortedSegments of(const KernelArgs& args, std::int64_t size, int axis,
                           std::int64_t examples) {
    SortedSegments s;
    const View& indices = args.in[1];
    const std::int64_t rows = indices.shape.rank() > 0 ? indices.shape[axis] : 1;
    const std::int64_t inner =
        indices.shape.rank() > 0 ? indices.shape.size(axis + 1, indices.shape.rank()) : 1;
    const std::int64_t count = indices.size();
    s.per_example_ = std::max<std::int64_t>(1, examples ? count / examples : 0);
    const auto array = [&args](std::int64_t n) {
      return static_cast<std::int64_t*>(args.scratch.take(std::size_t(n) * sizeof(std::int64_t)));
    };
    s.start_ = array(size + 1);
    s.order_ = array(count);
    s.position_ = array(count);
    std::fill_n(s.start_, size + 1, 0);
    // A counting sort, which keeps the order of equal indices.
    const auto flat = [=](std::int64_t k) {
      const std::int64_t row = k / (count / rows), rest = k % (count / rows);
      return (rest / inner * rows + row) * inner + rest % inner;
    };
    for (std::int64_t k = 0; k < count; ++k) {
      s.position_[k] = axis == 0 ? k : flat(k);
      ++s.start_[index_at<I>("segment_sum", args, args.in[1], s.position_[k], size) + 1];
    }
    for (std::int64_t i = 0; i < size; ++i) s.start_[i + 1] += s.start_[i];
    for (std::int64_t k = 0; k < count; ++k) {
      s.order_[s.start_[std::int64_t(indices.as<I>()[s.position_[k]])]++] = k;
    }
    // Every start has moved to its end, which is the next one's start.
    std::copy_backward(s.start_, s.start_ + size, s.start_ + size + 1);
    s.start_[0] = 0;
    return s;
  }

  // The places of an index.
  SegmentRange places(std::int64_t index) const {
    return {order_ + start_[index], order_ + start_[index + 1]};
  }

 private:
  std::int64_t* start_ = nullptr;
  std::int64_t* order_ = nullptr;
};

template <class T>
struct SegmentSums {
  SortedSegments segments;
  SegmentSum<T> sum;
};

// Rows [block.row, …) of the result of a subtree, or of a part of a leaf.
template <class T>
void add_segments(const void* operands, const LeafArgs& args, bool subtree) {
  const auto& [segments, all] = *static_cast<const SegmentSums<T>*>(operands);
  T* y = args.state.as<T>();
  if (args.first) std::fill_n(y, args.block.rows * all.width, T(0));
  for (std::int64_t i = 0; i < args.block.rows; ++i, y += all.width) {
    const std::int64_t row = args.block.row + i;
    const SortedSegments::SegmentRange places = segments.places(row % all.size);
    if (places.empty()) continue;
    const SortedSegments::SegmentRange range = segments.of_examples(places, args.begin, args.end);
    if (range.empty()) continue;
    const SegmentSum<T> sum = all.of_outer(row / all.size);
    if (subtree) {
      sum.sum(args.begin, args.end, range, y, args.scratch);
    } else {
      sum.leaf(args.begin, args.end, range, y, args.scratch);
    }
  }
}

// For any element type.
struct OpenSegments {
  const void* sum;
  void (*add)(const void* sum, const LeafArgs& args, bool subtree);
};

// The examples are on an axis of the indices.
template <class T>
const OpenSegments* open_segments_of(const KernelArgs& args, int example_axis,
                                     std::int64_t examples) {
  const Shape& y = args.out[0].shape;
  const int axis = axis_along(args.attrs, y);
  const std::int64_t size = y[axis], width = y.size(axis + 1, y.rank());
  const auto segments = [&]<class I>() {
    return SortedSegments::of<I>(args, size, example_axis, examples);
  };
  void* memory = args.scratch.take(sizeof(SegmentSums<T>));
  const SortedSegments sorted = visit<kIndices>("segment_sum", args.in[1].dtype, segments);
  const auto* sum =
      new (memory) SegmentSums<T>{sorted,
                                  {static_cast<const SegmentPositions&>(sorted), args.in[0].as<T>(),
                                   args.in[1].size(), size, width}};
  return new (args.scratch.take(sizeof(OpenSegments))) OpenSegments{sum, add_segments<T>};
}

const OpenSegments* open_segments(const KernelArgs& args, int example_axis, std::int64_t examples) {
  return visit<kNumbers & kComputed>("segment_sum", args.in[0].dtype, [&]<class T>() {
    static_assert(kSumsInPlace<T>);
    return open_segments_of<T>(args, example_axis, examples);
  });
}

void check_indices(const KernelArgs& args, std::int64_t size) {
  visit<kIndices>("segment_sum", args.in[1].dtype, [&]<class I>() {
    for (std::int64_t i = 0; i < args.in[1].size(); ++i)
      index_at<I>("segment_sum", args, args.in[1], i, size);
  });
}

// Calls f(first, last, scratch) for parts of [0, rows), in parallel where there is enough to do.
template <class F>
void by_rows(const KernelArgs& args, std::int64_t rows, std::size_t bytes, const F& f) {
  constexpr std::size_t kWorthSplitting = std::size_t(1) << 18;
  if (!args.parallel || args.parallel->threads() < 2 || bytes < kWorthSplitting) {
    return f(0, rows, args.scratch);
  }
  const std::int64_t parts =
      std::min<std::int64_t>(rows, std::int64_t{4} * args.parallel->threads());
  args.parallel->run(parts, [&](std::int64_t p) {
    Scratch own;
    f(rows * p / parts, rows * (p + 1) / parts, own);
  });
}

}  // namespace

// Indices that are not examples are summed as if the rows of their first axis were.
void segment_sum_kernel(const KernelArgs& args) {
  const View& y = args.out[0];
  const View& indices = args.in[1];
  const std::size_t bytes = std::size_t(y.size()) * size_of(y.dtype);
  if (bytes == 0) return check_indices(args, y.shape[axis_along(args.attrs, y.shape)]);
  if (indices.size() == 0) {
    std::memset(y.data, 0, bytes);
    return;
  }
  const Scratch::Frame frame(args.scratch);
  const int axis = std::max(indices.example_axis, 0);
  const bool batched = indices.example_axis >= 0 && args.examples > 0;
  const std::int64_t rows = indices.shape.rank() > 0 ? indices.shape[axis] : 1;
  const std::int64_t examples = batched ? args.examples : rows;
  const OpenSegments* segments = open_segments(args, axis, examples);
  const AccumulatorShape shape = segment_state(args.in, args.attrs, y);
  by_rows(args, shape.rows, bytes, [&](std::int64_t first, std::int64_t last, Scratch& scratch) {
    const Rect block{first, 0, last - first, shape.columns};
    const std::int64_t offset = first * shape.columns * shape.item[0];
    const Accumulator state{{y.as<std::byte>() + offset}, shape.columns};
    segments->add(segments->sum, {nullptr, 0, examples, block, state, true, scratch}, true);
  });
}

// Ranges of rows of the result.
AccumulatorShape segment_state(std::span<const View>, const Attrs& attrs, const View& result) {
  const Shape& y = result.shape;
  const int axis = axis_along(attrs, y);
  return {.rows = y.size(0, axis + 1),
          .columns = y.size(axis + 1, y.rank()),
          .row_grain = 1,
          .item = {std::int64_t(size_of(result.dtype))},
          .subtrees = true};
}

const void* open_segments(const KernelArgs& args) {
  return open_segments(args, args.in[1].example_axis, args.examples);
}

void segment_leaf(const LeafArgs& args) {
  const auto* segments = static_cast<const OpenSegments*>(args.operands);
  segments->add(segments->sum, args, false);
}

void segment_subtree(const LeafArgs& args) {
  const auto* segments = static_cast<const OpenSegments*>(args.operands);
  segments->add(segments->sum, args, true);
}

}  // namespace samegrad
