#include "ops/index_kernel.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thresholds.h"
#include "kernels/table.h"
#include "tensor/tree.h"

namespace samegrad {
namespace {

[[noreturn]] void fail_index(std::string_view who, const KernelArgs& args, std::int64_t value,
                             std::int64_t flat, std::int64_t size) {
  fail(ErrorKind::kInvalidArgument, who, "indices must lie in [0, ", size, "): got ", value, " at ",
       place_of(args, args.in[1], flat), "; check the data, or clip the indices first.");
}

// The index at a flat position, checked.
template <class I>
std::int64_t index_at(std::string_view who, const KernelArgs& args, std::int64_t flat,
                      std::int64_t size) {
  const auto value = std::int64_t(args.in[1].as<I>()[flat]);
  if (value < 0 || value >= size) fail_index(who, args, value, flat, size);
  return value;
}

int axis_of(const KernelArgs& args, const Shape& shape) {
  const std::int64_t axis = args.attrs.integer("axis");
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
      const std::int64_t index = index_at<I>("gather", args, i, size);
      if (bytes) std::memcpy(y, x + index * bytes, std::size_t(bytes));
    }
  }
}

// The positions of indices, example by example, and which of them follow each other with one value.
// Rows that no position names stay zero: partial sums start from +0, so adding a zero is exact, and
// the tree over the dense result is the tree over the rows that are there.
class Segments {
 public:
  template <class I>
  static Segments of(const KernelArgs& args, std::int64_t size, const I*) {
    Segments s;
    const View& indices = args.in[1];
    const int axis = std::max(indices.example_axis, 0);
    const std::int64_t rows = indices.shape.rank() > 0 ? indices.shape[axis] : 1;
    const bool batched = indices.example_axis >= 0 && args.examples > 0;
    s.examples_ = batched ? args.examples : rows;
    const std::int64_t inner =
        indices.shape.rank() > 0 ? indices.shape.size(axis + 1, indices.shape.rank()) : 1;
    const std::int64_t count = indices.size();
    s.per_example_ = s.examples_ ? count / s.examples_ : 0;
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
      ++s.start_[index_at<I>("segment_sum", args, s.position_[k], size) + 1];
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

  std::int64_t examples() const { return examples_; }
  const std::int64_t* begin(std::int64_t index) const { return order_ + start_[index]; }
  const std::int64_t* end(std::int64_t index) const { return order_ + start_[index + 1]; }
  std::int64_t example(std::int64_t k) const { return k / per_example_; }
  std::int64_t position(std::int64_t k) const { return position_[k]; }

 private:
  std::int64_t examples_ = 0;
  std::int64_t per_example_ = 0;
  std::int64_t* start_ = nullptr;
  std::int64_t* order_ = nullptr;
  std::int64_t* position_ = nullptr;
};

// Sums the rows of one index.
template <class T>
class SegmentTree {
 public:
  SegmentTree(const Segments& segments, const T* values, std::int64_t width)
      : segments_(segments), values_(values), width_(width) {}

  // The rows [first, last) of the result.
  void sum_rows(std::int64_t first, std::int64_t last, bool accumulate, T* y) {
    if (!accumulate) {
      std::fill_n(y + first * width_, (last - first) * width_, T(0));
      const int levels = tree_levels(segments_.examples(), kLeafExamples);
      partials_.resize(std::size_t(levels * width_));
    }
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t *begin = segments_.begin(i), *end = segments_.end(i);
      if (begin == end) continue;
      if (accumulate) {
        chain(begin, end, y + i * width_);
      } else {
        sum(0, segments_.examples(), begin, end, 0, y + i * width_);
      }
    }
  }

 private:
  // y holds zeros or the sum so far.
  void chain(const std::int64_t* first, const std::int64_t* last, T* y) const {
    for (; first != last; ++first) {
      const T* row = values_ + segments_.position(*first) * width_;
      for (std::int64_t j = 0; j < width_; ++j) y[j] = T(y[j] + row[j]);
    }
  }

  // The node of the tree over the examples [begin, end); first … last belong to them, at least one.
  void sum(std::int64_t begin, std::int64_t end, const std::int64_t* first,
           const std::int64_t* last, int level, T* y) {
    if (end - begin <= kLeafExamples) {
      std::fill_n(y, width_, T(0));
      chain(first, last, y);
      return;
    }
    const std::int64_t middle = begin + tree_split(end - begin);
    const std::int64_t* split = std::partition_point(
        first, last, [&](std::int64_t k) { return segments_.example(k) < middle; });
    if (split == last) return sum(begin, middle, first, last, level + 1, y);
    if (split == first) return sum(middle, end, first, last, level + 1, y);
    T* right = partials_.data() + level * width_;
    sum(begin, middle, first, split, level + 1, y);
    sum(middle, end, split, last, level + 1, right);
    for (std::int64_t j = 0; j < width_; ++j) y[j] = T(y[j] + right[j]);
  }

  const Segments& segments_;
  const T* values_;
  std::int64_t width_;
  std::vector<T> partials_;  // one row for each level; a chain needs none
};

// Calls f(first, last) for parts of [0, size), in parallel where there is enough to do.
template <class F>
void by_rows(const KernelArgs& args, std::int64_t size, std::int64_t bytes, const F& f) {
  const bool split =
      args.parallel && args.parallel->threads() > 1 && bytes >= thresholds().parallel_segment_bytes;
  if (!split) return f(0, size);
  const std::int64_t parts =
      std::min(size, thresholds().parts_per_thread * args.parallel->threads());
  args.parallel->run(parts, [&](std::int64_t p) { f(size * p / parts, size * (p + 1) / parts); });
}

template <class T, class I>
void segment_sum(const KernelArgs& args) {
  const View& y = args.out[0];
  const int axis = axis_of(args, y.shape);
  const std::int64_t outer = y.shape.size(0, axis), size = y.shape[axis];
  const std::int64_t width = y.shape.size(axis + 1, y.shape.rank());
  const std::int64_t count = args.in[1].size();
  if (count == 0) {
    if (!args.accumulate) std::fill_n(y.as<T>(), y.size(), T(0));
    return;
  }
  const Scratch::Frame frame(args.scratch);
  const Segments segments = Segments::of(args, size, static_cast<const I*>(nullptr));
  const T* values = args.in[0].as<T>();
  T* to = y.as<T>();
  for (std::int64_t o = 0; o < outer; ++o, values += count * width, to += size * width) {
    by_rows(args, size, size * width * std::int64_t(sizeof(T)),
            [&](std::int64_t first, std::int64_t last) {
              SegmentTree<T>(segments, values, width).sum_rows(first, last, args.accumulate, to);
            });
  }
}

template <class T>
void segment_sum_by_index(const KernelArgs& args) {
  if (args.in[1].dtype == DType::kInt32) {
    segment_sum<T, std::int32_t>(args);
  } else {
    segment_sum<T, std::int64_t>(args);
  }
}

// Calls f(T()) with the element type of a numeric dtype.
template <class F>
void with_number(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float());
    case DType::kFloat64:
      return f(double());
    case DType::kInt32:
      return f(std::int32_t());
    case DType::kInt64:
      return f(std::int64_t());
    default:
      return f(std::uint8_t());
  }
}

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
  const double on = args.attrs.number("on"), off = args.attrs.number("off");
  if (args.out[0].dtype == DType::kBool) {
    one_hot<bool, I>(args, on != 0, off != 0);
    return;
  }
  with_number(args.out[0].dtype, [&](auto type) {
    using T = decltype(type);
    one_hot<T, I>(args, T(on), T(off));
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
        f(at, (o * size + index_at<I>(who, args, at, size)) * inner + i);
      }
    }
  }
}

template <class F>
void along_axis_of_any(std::string_view who, const KernelArgs& args, const Shape& x, const F& f) {
  if (args.in[1].dtype == DType::kInt32) {
    along_axis<std::int32_t>(who, args, x, f);
  } else {
    along_axis<std::int64_t>(who, args, x, f);
  }
}

}  // namespace

void gather_kernel(const KernelArgs& args) {
  if (args.in[1].dtype == DType::kInt32) {
    gather<std::int32_t>(args);
  } else {
    gather<std::int64_t>(args);
  }
}

void segment_sum_kernel(const KernelArgs& args) {
  with_number(args.in[0].dtype, [&](auto type) { segment_sum_by_index<decltype(type)>(args); });
}

void one_hot_kernel(const KernelArgs& args) {
  switch (args.in[0].dtype) {
    case DType::kInt32:
      return one_hot_of<std::int32_t>(args);
    case DType::kInt64:
      return one_hot_of<std::int64_t>(args);
    default:
      return one_hot_of<std::uint8_t>(args);
  }
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
  with_number(y.dtype, [&](auto type) {
    using T = decltype(type);
    std::fill_n(y.as<T>(), y.size(), T(0));
    along_axis_of_any("take_along_axis_grad", args, y.shape,
                      [&](std::int64_t from, std::int64_t to) {
                        y.as<T>()[to] = T(y.as<T>()[to] + args.in[0].as<T>()[from]);
                      });
  });
}

}  // namespace samegrad
