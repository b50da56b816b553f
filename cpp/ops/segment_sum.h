// Sums of values with the same row index, in the order of the tree over examples.
#pragma once

#include <algorithm>

#include "tensor/kernel_args.h"
#include "tensor/tree.h"

namespace samegrad {

// Numbers of places that name rows: example by example, so many in each.
class Places {
 public:
  Places() = default;
  // Those of the first example begin at `first`.
  Places(std::int64_t per_example, std::int64_t first) : per_example_(per_example), first_(first) {}

  // The places of one row, in order.
  struct Range {
    const std::int64_t *begin, *end;
    bool empty() const { return begin == end; }
  };
  // Those before the example.
  const std::int64_t* split(const Range& range, std::int64_t example) const {
    const std::int64_t first = first_ + example * per_example_;
    return std::partition_point(range.begin, range.end,
                                [first](std::int64_t k) { return k < first; });
  }
  Range of_examples(const Range& range, std::int64_t begin, std::int64_t end) const {
    const std::int64_t* first = split(range, begin);
    return {first, split({first, range.end}, end)};
  }
  // The position of a place's values among all values.
  std::int64_t position(std::int64_t k) const { return position_ ? position_[k] : k - first_; }
  std::int64_t per_example() const { return per_example_; }

 protected:
  std::int64_t per_example_ = 1, first_ = 0;
  std::int64_t* position_ = nullptr;  // null: in the order of the places
};

// Sums values[outer][count][width] by index to y[outer][size][width].
template <class T>
struct SegmentSum {
  using Range = Places::Range;

  Places places;
  const T* values;
  std::int64_t count, size, width;

  // A leaf is one chain unless that may get too long: then it is one for each example.
  bool by_example() const { return kLeafExamples * places.per_example() > kContractionBlock; }

  void add_rows(const T* row, T* y) const {
    for (std::int64_t j = 0; j < width; ++j) y[j] = T(y[j] + row[j]);
  }

  // y holds zeros or the sum so far.
  void chain(const Range& range, T* y) const {
    for (const std::int64_t* k = range.begin; k != range.end; ++k) {
      add_rows(values + places.position(*k) * width, y);
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
      const Range of_one = places.of_examples(range, i, i + 1);
      if (of_one.empty()) continue;
      example(of_one, own, scratch);
      add_rows(own, y);
    }
  }

  // The node of the tree over the examples [begin, end), which the places belong to: at least one.
  void sum(std::int64_t begin, std::int64_t end, const Range& range, T* y, Scratch& scratch) const {
    // Two numbers have one sum, wherever their paths part, and integers have one in any order.
    if (!is_floating(kDTypeOf<T>) || range.end - range.begin <= 2) {
      std::fill_n(y, width, T(0));
      return chain(range, y);
    }
    if (end - begin <= kLeafExamples) {
      std::fill_n(y, width, T(0));
      return leaf(begin, end, range, y, scratch);
    }
    const std::int64_t middle = begin + tree_split(end - begin);
    const std::int64_t* split = places.split(range, middle);
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

}  // namespace samegrad
