#include "ops/reduce_kernel.h"

#include <cstring>

#include "base/error.h"
#include "kernels/elementwise_fn.h"
#include "tensor/tree.h"

namespace samegrad {
namespace {

std::int64_t product(const AxisGroups& groups, int last) {
  std::int64_t n = 1;
  for (int i = 0; i < last; ++i) n *= groups.size[i];
  return n;
}

bool any_reduced(const AxisGroups& groups) {
  for (int i = 0; i < groups.count; ++i) {
    if (groups.reduced[i]) return true;
  }
  return false;
}

// The single numbers x[0 … n) by the tree down to one; n > 0.
template <class T>
T sum_numbers(const T* x, std::int64_t n) {
  if (n == 1) return x[0];
  const std::int64_t half = tree_split(n);
  return T(sum_numbers(x, half) + sum_numbers(x + half, n - half));
}

void join_numbers(BinaryKernel join, std::size_t item, const char* x, std::int64_t n, char* y,
                  Scratch& scratch) {
  char* levels = static_cast<char*>(scratch.take(item * std::size_t(tree_levels(n, 1))));
  const auto at = [&](int level) { return levels + item * std::size_t(level); };
  walk_tree(
      0, n, 1, 0,
      [&](std::int64_t i, std::int64_t, int level) {
        std::memcpy(at(level), x + item * std::size_t(i), item);
      },
      [&](int level) { join(at(level), at(level + 1), at(level), 1, 1, 1); });
  std::memcpy(y, levels, item);
}

// One number per example in x.
void reduce_numbers(ReduceFn fn, BinaryKernel join, DType dtype, const void* x, std::int64_t n,
                    void* y, Scratch& scratch) {
  if (fn == ReduceFn::kSum && dtype == DType::kFloat32) {
    *static_cast<float*>(y) = sum_numbers(static_cast<const float*>(x), n);
  } else if (fn == ReduceFn::kSum && dtype == DType::kFloat64) {
    *static_cast<double*>(y) = sum_numbers(static_cast<const double*>(x), n);
  } else {
    join_numbers(join, size_of(dtype), static_cast<const char*>(x), n, static_cast<char*>(y),
                 scratch);
  }
}

// A result of one element.
void reduce_to_number(ReduceFn fn, BinaryFn join, const View& x, std::int64_t examples,
                      bool accumulate, const View& y, Scratch& scratch) {
  const BinaryKernel f = kernels().binary(join, x.dtype);
  const std::int64_t elements = x.size() / examples;
  const void* numbers = x.data;
  if (elements != 1) {
    void* reduced = scratch.take(size_of(x.dtype) * std::size_t(examples));
    kernels().row_reduce(fn, x.dtype)(x.data, reduced, examples, elements);
    numbers = reduced;
  }
  void* sum = accumulate ? scratch.take(size_of(x.dtype)) : y.data;
  reduce_numbers(fn, f, x.dtype, numbers, examples, sum, scratch);
  if (accumulate) f(y.data, sum, y.data, 1, 1, 1);
}

// A result of several elements: the leaves of the tree.
class RowTree {
 public:
  RowTree(ReduceFn fn, const View& x, std::uint32_t reduced_axes, std::int64_t examples,
          Scratch& scratch)
      : fn_(fn), dtype_(x.dtype), item_(size_of(x.dtype)), scratch_(scratch) {
    const AxisGroups groups(x.shape, reduced_axes);
    rows_per_example_ = groups.size[0] / examples;
    inner_.count = 0;
    columns_ = row_size_ = 1;
    for (int i = 1; i < groups.count; ++i) {
      inner_.size[inner_.count] = groups.size[i];
      inner_.reduced[inner_.count++] = groups.reduced[i];
      row_size_ *= groups.size[i];
      if (!groups.reduced[i]) columns_ *= groups.size[i];
    }
    x_ = x.as<const char>();
    column_reduce_ = kernels().column_reduce(fn, dtype_);
  }

  std::int64_t columns() const { return columns_; }

  void leaf(std::int64_t begin, std::int64_t end, void* y, bool accumulate) const {
    const Scratch::Frame frame(scratch_);
    const std::int64_t rows = (end - begin) * rows_per_example_;
    const char* x = x_ + std::size_t(begin * rows_per_example_ * row_size_) * item_;
    if (any_reduced(inner_)) {
      AxisGroups groups = inner_;
      std::memmove(groups.size + 1, groups.size, sizeof groups.size - sizeof groups.size[0]);
      std::memmove(groups.reduced + 1, groups.reduced, sizeof groups.reduced - 1);
      groups.size[0] = rows;
      groups.reduced[0] = false;
      ++groups.count;
      char* reduced = static_cast<char*>(scratch_.take(std::size_t(rows * columns_) * item_));
      reduce_groups(fn_, dtype_, groups, x, reduced, scratch_);
      x = reduced;
    }
    column_reduce_(x, y, rows, columns_, accumulate);
  }

 private:
  ReduceFn fn_;
  DType dtype_;
  std::size_t item_;
  Scratch& scratch_;
  const char* x_;
  std::int64_t rows_per_example_, row_size_, columns_;
  AxisGroups inner_;
  ColumnReduceKernel column_reduce_;
};

}  // namespace

std::uint32_t axes_mask(std::string_view who, const std::vector<std::int64_t>& axes, int rank) {
  std::uint32_t mask = 0;
  for (std::int64_t axis : axes) {
    const std::uint32_t bit = 1u << normalize_axis(axis, rank, who);
    check_value(!(mask & bit), who, "axis ", axis, " is named twice in ",
                to_string(AttrValue(axes)), "; name each axis once.");
    mask |= bit;
  }
  return mask;
}

AxisGroups::AxisGroups(const Shape& shape, std::uint32_t reduced_axes) {
  for (int axis = 0; axis < shape.rank(); ++axis) push(shape[axis], reduced_axes >> axis & 1u);
}

void AxisGroups::push(std::int64_t dim, bool is_reduced) {
  if (count > 0 && reduced[count - 1] == is_reduced) {
    size[count - 1] *= dim;
  } else {
    size[count] = dim;
    reduced[count++] = is_reduced;
  }
}

void reduce_groups(ReduceFn fn, DType dtype, AxisGroups groups, const void* x, void* y,
                   Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const std::size_t item = size_of(dtype);
  if (!any_reduced(groups)) {
    const std::size_t bytes = item * std::size_t(product(groups, groups.count));
    if (bytes) std::memcpy(y, x, bytes);
    return;
  }
  while (any_reduced(groups)) {
    const bool by_lanes = groups.reduced[groups.count - 1];
    // The last kept group, if the innermost one is kept, and the reduced one before it.
    const std::int64_t columns = by_lanes ? 1 : groups.size[--groups.count];
    const std::int64_t n = groups.size[--groups.count];
    const std::int64_t outer = product(groups, groups.count);
    void* next = any_reduced(groups) ? scratch.take(item * std::size_t(outer * columns)) : y;
    if (by_lanes) {
      kernels().row_reduce(fn, dtype)(x, next, outer, n);
    } else {
      const ColumnReduceKernel reduce = kernels().column_reduce(fn, dtype);
      const std::size_t in_bytes = item * std::size_t(n * columns);
      const std::size_t out_bytes = item * std::size_t(columns);
      for (std::int64_t i = 0; i < outer; ++i) {
        reduce(static_cast<const char*>(x) + in_bytes * std::size_t(i),
               static_cast<char*>(next) + out_bytes * std::size_t(i), n, columns, false);
      }
      groups.push(columns, false);
    }
    x = next;
  }
}

void reduce_tree(ReduceFn fn, BinaryFn join, const View& x, std::uint32_t reduced_axes,
                 std::int64_t examples, bool accumulate, const View& y, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  if (y.size() == 1) {
    reduce_to_number(fn, join, x, examples, accumulate, y, scratch);
    return;
  }
  const RowTree rows(fn, x, reduced_axes, examples, scratch);
  if (accumulate || examples <= kLeafExamples) {
    rows.leaf(0, examples, y.data, accumulate);
    return;
  }
  const BinaryKernel f = kernels().binary(join, x.dtype);
  const std::int64_t columns = rows.columns();
  const std::size_t bytes = size_of(x.dtype) * std::size_t(columns);
  char* partial = static_cast<char*>(
      scratch.take(bytes * std::size_t(tree_levels(examples, kLeafExamples) - 1)));
  const auto at = [&](int level) {
    return level == 0 ? y.as<char>() : partial + bytes * std::size_t(level - 1);
  };
  walk_tree(
      0, examples, kLeafExamples, 0,
      [&](std::int64_t begin, std::int64_t end, int level) {
        rows.leaf(begin, end, at(level), false);
      },
      [&](int level) { f(at(level), at(level + 1), at(level), columns, 1, 1); });
}

}  // namespace samegrad
