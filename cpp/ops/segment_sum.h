// Sums of values with the same row index, in the order of the tree over examples.
#pragma once

#include <algorithm>

#include "base/reduction_order.h"
#include "tensor/kernel_args.h"

namespace samegrad {

// Numbers of places that name rows: example by example, so many in each.
class SegmentPositions {
 public:
  SegmentPositions() = default;
  // The places of the first example begin at `first`.
  SegmentPositions(std::int64_t per_example, std::int64_t first)
      : per_example_(per_example), first_(first) {}

  // The places of one row, in order.
  struct SegmentRange {
    const std::int64_t *begin, *end;
    bool empty() const { return begin == end; }
  };
  // The end of the places before the example.
  const std::int64_t* split(const SegmentRange& range, std::int64_t example) const {
    const std::int64_t first = first_ + example * per_example_;
    return std::partition_point(range.begin, range.end,
                                [first](std::int64_t k) { return k < first; });
  }
  SegmentRange of_examples(const SegmentRange& range, std::int64_t begin, std::int64_t end) const {
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
  using SegmentRange = SegmentPositions::SegmentRange;

  SegmentPositions places;
  const T* values;
  std::int64_t count, size, width;

  void add_rows(const T* row, T* y) const {
    for (std::int64_t j = 0; j < width; ++j) y[j] = T(y[j] + row[j]);
  }

  // y holds zeros or the sum so far.
  void chain(const SegmentRange& range, T* y) const {
    for (const std::int64_t* k = range.begin; k != range.end; ++k) {
      add_rows(values + places.position(*k) * width, y);
    }
  }

  // The sum for index o of the outer axes.
  SegmentSum of_outer(std::int64_t o) const {
    SegmentSum sum = *this;
    sum.values += o * count * width;
    return sum;
  }

  // Rows of sums, one for each level: y, and the next ones in scratch.
  struct Levels {
    T *y, *others;
    std::int64_t width;

    T* operator[](int level) const { return level == 0 ? y : others + (level - 1) * width; }
  };
  Levels take_levels(T* y, int levels, Scratch& scratch) const {
    return {y, take_rows(levels - 1, scratch), width};
  }

  // The places of one example, in blocks.
  void example(const SegmentRange& range, T* y, Scratch& scratch) const {
    const TreeRange all{0, range.end - range.begin};
    const Scratch::Frame frame(scratch);
    const Levels level = take_levels(y, kIndexTree.levels(all.size()), scratch);
    walk_tree(
        kIndexTree, all,
        [&](TreeRange block, int at) {
          std::fill_n(level[at], width, T(0));
          chain({range.begin + block.begin, range.begin + block.end}, level[at]);
        },
        [&](int at) { add_rows(level[at + 1], level[at]); });
  }

  // The places of at most a leaf's examples; y holds zeros or the sum so far.
  void leaf(std::int64_t begin, std::int64_t end, SegmentRange range, T* y,
            Scratch& scratch) const {
    if (leaf_is_one_chain(places.per_example())) return chain(range, y);
    const Scratch::Frame frame(scratch);
    T* own = take_rows(1, scratch);
    for (std::int64_t i = begin; i < end; ++i) {
      const SegmentRange of_one = places.of_examples(range, i, i + 1);
      if (of_one.empty()) continue;
      example(of_one, own, scratch);
      add_rows(own, y);
    }
  }

  // The tree over the examples that have a place of the row. Two numbers have one sum, wherever
  // their paths part, and integers have one in any order.
  struct Split {
    const SegmentPositions& places;

    const std::int64_t* operator()(const NamedRange& named, std::int64_t example) const {
      return places.split({named.begin, named.end}, example);
    }
  };
  struct Tree : NamedHalving<Split> {
    static bool is_chain(const NamedRange& named) {
      return !is_floating(kDTypeOf<T>) || named.end - named.begin <= 2;
    }
    bool is_leaf(const NamedRange& named) const {
      return is_chain(named) || NamedHalving<Split>::is_leaf(named);
    }
  };

  // The node of the tree over the examples [begin, end), which the places belong to: at least one.
  void sum(std::int64_t begin, std::int64_t end, const SegmentRange& range, T* y,
           Scratch& scratch) const {
    const Tree tree{{kExampleTree, {places}}};
    const NamedRange all{{begin, end}, range.begin, range.end};
    const auto sum_leaf = [&](const NamedRange& named, T* to) {
      const SegmentRange of{named.begin, named.end};
      std::fill_n(to, width, T(0));
      if (tree.is_chain(named)) return chain(of, to);
      leaf(named.range.begin, named.range.end, of, to, scratch);
    };
    if (tree.is_leaf(all)) return sum_leaf(all, y);
    const Scratch::Frame frame(scratch);
    const Levels level = take_levels(y, kExampleTree.levels(end - begin), scratch);
    walk_tree(
        tree, all, [&](const NamedRange& named, int at) { sum_leaf(named, level[at]); },
        [&](int at) { add_rows(level[at + 1], level[at]); });
  }

  T* take_rows(int rows, Scratch& scratch) const {
    return static_cast<T*>(scratch.take(std::size_t(rows * width) * sizeof(T)));
  }
};

}  // namespace samegrad
