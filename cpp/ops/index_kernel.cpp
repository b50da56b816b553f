#include "ops/index_kernel.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "tensor/tree.h"

namespace samegrad {
namespace {

int axis_of(const KernelArgs& args, const Shape& shape) {
  const std::int64_t axis = args.attrs.as<IndexAttrs>().axis;
  return int(axis < 0 ? axis + shape.rank() : axis);
}

template <class I>
void gather(const KernelArgs& args) {
  const View& params = args.in[0];
  const int axis = axis_of(args, params.shape);
  const std::int64_t outer = params.shape.size(0, axis);
  const std::int64_t size = params.shape[axis];
  const std::int64_t bytes =
      params.shape.size(axis + 1, params.shape.rank()) * std::int64_t(size_of(params.dtype));
  const std::int64_t count = args.in[1].size();
  const char* x = params.as<char>();
  char* y = args.out[0].as<char>();
  for (std::int64_t o = 0; o < outer; ++o, x += size * bytes) {
    for (std::int64_t i = 0; i < count; ++i, y += bytes) {
      const std::int64_t index = index_at<I>("gather", args, args.in[1], i, size);
      if (bytes) std::memcpy(y, x + index * bytes, std::size_t(bytes));
    }
  }
}

// The positions of indices, example by example, and which of them follow each other with one value.
// Rows that no position names stay zero: partial sums start from +0, so adding a zero is exact, and
// the tree over the dense result is the tree over the rows that are there.
class Segments {
 public:
  // `examples` of them lie on an axis of the indices.
  template <class I>
  static Segments of(const KernelArgs& args, std::int64_t size, int axis, std::int64_t examples) {
    Segments s;
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

  struct Range {
    const std::int64_t *begin, *end;
    bool empty() const { return begin == end; }
  };
  // The places of an index.
  Range places(std::int64_t index) const {
    return {order_ + start_[index], order_ + start_[index + 1]};
  }
  // Those before the example.
  const std::int64_t* split(const Range& range, std::int64_t example) const {
    const std::int64_t first = example * per_example_;
    return std::partition_point(range.begin, range.end,
                                [first](std::int64_t k) { return k < first; });
  }
  Range of_examples(const Range& range, std::int64_t begin, std::int64_t end) const {
    const std::int64_t* first = split(range, begin);
    return {first, split({first, range.end}, end)};
  }
  std::int64_t position(std::int64_t k) const { return position_[k]; }
  std::int64_t per_example() const { return per_example_; }

 private:
  std::int64_t per_example_ = 1;
  std::int64_t* start_ = nullptr;
  std::int64_t* order_ = nullptr;
  std::int64_t* position_ = nullptr;
};

// Sums values[outer][count][width] by index to y[outer][size][width].
template <class T>
struct SegmentSum {
  using Range = Segments::Range;

  Segments segments;
  const T* values;
  std::int64_t count, size, width;

  // A leaf is one chain unless that may get too long: then it is one for each example.
  bool by_example() const { return kLeafExamples * segments.per_example() > kContractionBlock; }

  void add_rows(const T* row, T* y) const {
    for (std::int64_t j = 0; j < width; ++j) y[j] = T(y[j] + row[j]);
  }

  // y holds zeros or the sum so far.
  void chain(const Range& range, T* y) const {
    for (const std::int64_t* k = range.begin; k != range.end; ++k) {
      add_rows(values + segments.position(*k) * width, y);
    }
  }

  // The same sum for the next index of the outer axes.
  SegmentSum of_outer(std::int64_t o) const {
    SegmentSum sum = *this;
    sum.values += o * count * width;
    return sum;
  }

  // The places of one example, in blocks that are joined by halving.
  void example(const Range& range, T* y, Scratch& scratch) const {
    std::fill_n(y, width, T(0));
    if (range.end - range.begin <= kColumnBlock) return chain(range, y);
    const Scratch::Frame frame(scratch);
    T* right = take_row(scratch);
    const std::int64_t* middle = range.begin + tree_split(range.end - range.begin);
    example({range.begin, middle}, y, scratch);
    example({middle, range.end}, right, scratch);
    add_rows(right, y);
  }

  // The places of at most a leaf's examples; y holds zeros or the sum so far.
  void leaf(std::int64_t begin, std::int64_t end, Range range, T* y, Scratch& scratch) const {
    if (!by_example()) return chain(range, y);
    const Scratch::Frame frame(scratch);
    T* own = take_row(scratch);
    for (std::int64_t i = begin; i < end; ++i) {
      const Range of_one = segments.of_examples(range, i, i + 1);
      if (of_one.empty()) continue;
      example(of_one, own, scratch);
      add_rows(own, y);
    }
  }

  // The node of the tree over the examples [begin, end), which the places belong to: at least one.
  void sum(std::int64_t begin, std::int64_t end, const Range& range, T* y, Scratch& scratch) const {
    // Two numbers have one sum, wherever their paths part, and whole numbers have one in any order.
    if (!is_floating(kDTypeOf<T>) || range.end - range.begin <= 2) {
      std::fill_n(y, width, T(0));
      return chain(range, y);
    }
    if (end - begin <= kLeafExamples) {
      std::fill_n(y, width, T(0));
      return leaf(begin, end, range, y, scratch);
    }
    const std::int64_t middle = begin + tree_split(end - begin);
    const std::int64_t* split = segments.split(range, middle);
    if (split == range.end) return sum(begin, middle, range, y, scratch);
    if (split == range.begin) return sum(middle, end, range, y, scratch);
    const Scratch::Frame frame(scratch);
    T* right = take_row(scratch);
    sum(begin, middle, {range.begin, split}, y, scratch);
    sum(middle, end, {split, range.end}, right, scratch);
    add_rows(right, y);
  }

  T* take_row(Scratch& scratch) const {
    return static_cast<T*>(scratch.take(std::size_t(width) * sizeof(T)));
  }
};

// Rows [block.row, …) of the result of a subtree, or of a part of a leaf.
template <class T>
void add_segments(const void* operands, const LeafArgs& args, bool subtree) {
  const SegmentSum<T>& all = *static_cast<const SegmentSum<T>*>(operands);
  T* y = args.state.as<T>();
  if (args.first) std::fill_n(y, args.block.rows * all.width, T(0));
  for (std::int64_t i = 0; i < args.block.rows; ++i, y += all.width) {
    const std::int64_t row = args.block.row + i;
    const Segments::Range places = all.segments.places(row % all.size);
    if (places.empty()) continue;
    const Segments::Range range = all.segments.of_examples(places, args.begin, args.end);
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

// The examples lie on an axis of the indices.
template <class T>
const OpenSegments* open_segments_of(const KernelArgs& args, int example_axis,
                                     std::int64_t examples) {
  const Shape& y = args.out[0].shape;
  const int axis = axis_of(args, y);
  const std::int64_t size = y[axis], width = y.size(axis + 1, y.rank());
  const auto segments = [&]<class I>() {
    return Segments::of<I>(args, size, example_axis, examples);
  };
  void* memory = args.scratch.take(sizeof(SegmentSum<T>));
  const auto* sum =
      new (memory) SegmentSum<T>{visit<kIndices>("segment_sum", args.in[1].dtype, segments),
                                 args.in[0].as<T>(), args.in[1].size(), size, width};
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
  const std::int64_t parts = std::min<std::int64_t>(rows, 4 * args.parallel->threads());
  args.parallel->run(parts, [&](std::int64_t p) {
    Scratch own;
    f(rows * p / parts, rows * (p + 1) / parts, own);
  });
}

// T is an unsigned integer: numbers are written as bits.
template <class T, class I>
void one_hot(const KernelArgs& args, T on, T off) {
  const View& y = args.out[0];
  const std::int64_t depth = y.shape[y.shape.rank() - 1];
  const std::int64_t count = args.in[0].size();
  const I* indices = args.in[0].as<I>();
  std::fill_n(y.as<T>(), count * depth, off);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = std::int64_t(indices[i]);
    if (index >= 0 && index < depth) y.as<T>()[i * depth + index] = on;
  }
}

template <class I>
void one_hot_of(const KernelArgs& args) {
  const auto& attrs = args.attrs.as<OneHotAttrs>();
  visit(args.out[0].dtype, [&]<class T>() {
    using B = BitsOf<T>;
    one_hot<B, I>(args, std::bit_cast<B>(attrs.on.as<T>()), std::bit_cast<B>(attrs.off.as<T>()));
  });
}

// The lines of x along an axis: calls f(position among indices, element of x).
template <class I, class F>
void along_axis(std::string_view who, const KernelArgs& args, const Shape& x, const F& f) {
  const int axis = axis_of(args, x);
  const Shape& shape = args.in[1].shape;
  const std::int64_t outer = shape.size(0, axis), inner = shape.size(axis + 1, shape.rank());
  const std::int64_t size = x[axis];
  std::int64_t at = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t k = 0; k < shape[axis]; ++k) {
      for (std::int64_t i = 0; i < inner; ++i, ++at) {
        f(at, (o * size + index_at<I>(who, args, args.in[1], at, size)) * inner + i);
      }
    }
  }
}

template <class F>
void along_axis_of_any(std::string_view who, const KernelArgs& args, const Shape& x, const F& f) {
  visit<kIndices>(who, args.in[1].dtype, [&]<class I>() { along_axis<I>(who, args, x, f); });
}

}  // namespace

void fail_index(std::string_view who, const KernelArgs& args, const View& indices,
                std::int64_t value, std::int64_t flat, std::int64_t size) {
  fail(ErrorKind::kInvalidArgument, who, "indices must lie in [0, ", size, "): got ", value, " at ",
       place_of(args, indices, flat), "; check the data, or clip the indices first.");
}

void gather_kernel(const KernelArgs& args) {
  visit<kIndices>("gather", args.in[1].dtype, [&]<class I>() { gather<I>(args); });
}

// Indices that are no examples are summed as if the rows of their first axis were.
void segment_sum_kernel(const KernelArgs& args) {
  const View& y = args.out[0];
  const View& indices = args.in[1];
  const std::size_t bytes = std::size_t(y.size()) * size_of(y.dtype);
  if (bytes == 0) return check_indices(args, y.shape[axis_of(args, y.shape)]);
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
  const StateShape shape = segment_state(args.in, args.attrs, y);
  by_rows(args, shape.rows, bytes, [&](std::int64_t first, std::int64_t last, Scratch& scratch) {
    const Block block{first, 0, last - first, shape.columns};
    const std::int64_t offset = first * shape.columns * shape.item[0];
    const State state{{y.as<std::byte>() + offset}, shape.columns};
    segments->add(segments->sum, {nullptr, 0, examples, block, state, true, scratch}, true);
  });
}

// Ranges of rows of the result.
StateShape segment_state(std::span<const View>, const Attrs& attrs, const View& result) {
  const Shape& y = result.shape;
  const std::int64_t given = attrs.as<IndexAttrs>().axis;
  const int axis = int(given < 0 ? given + y.rank() : given);
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

void one_hot_kernel(const KernelArgs& args) {
  visit<kIntegers>("one_hot", args.in[0].dtype, [&]<class I>() { one_hot_of<I>(args); });
}

void take_along_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  const std::size_t item = size_of(x.dtype);
  along_axis_of_any("take_along_axis", args, x.shape, [&](std::int64_t to, std::int64_t from) {
    std::memcpy(y.as<char>() + to * std::int64_t(item), x.as<char>() + from * std::int64_t(item),
                item);
  });
}

void take_along_grad_kernel(const KernelArgs& args) {
  const View& y = args.out[0];
  visit<kNumbers & kComputed>("take_along_axis_grad", y.dtype, [&]<class T>() {
    std::fill_n(y.as<T>(), y.size(), T(0));
    along_axis_of_any("take_along_axis_grad", args, y.shape,
                      [&](std::int64_t from, std::int64_t to) {
                        y.as<T>()[to] = T(y.as<T>()[to] + args.in[0].as<T>()[from]);
                      });
  });
}

}  // namespace samegrad
