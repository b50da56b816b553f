#include "ops/reduce_kernel.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/elementwise_fn.h"
#include "ops/attributes.h"
#include "ops/transpose.h"

namespace samegrad {
namespace {

template <class T>
struct Numbers {
  const T* x;
  std::int64_t n;
};

// The tree down to one number, whose last halvings are a leaf.
template <class T>
struct NumberTree {
  struct Halves {
    Numbers<T> left, right;
  };

  static bool is_leaf(Numbers<T> of) { return of.n <= 4; }
  static Halves halves(Numbers<T> of) {
    const std::int64_t left = kReplicaTree.left(of.n);
    return {{of.x, left}, {of.x + left, of.n - left}};
  }
};

// The single numbers x[0 … n); n > 0.
template <class T>
T sum_numbers(const T* x, std::int64_t n) {
  const auto leaf = [](Numbers<T> of) {
    if (of.n == 1) return of.x[0];
    const T left = T(of.x[0] + of.x[1]);
    if (of.n == 2) return left;
    return T(left + (of.n == 3 ? of.x[2] : T(of.x[2] + of.x[3])));
  };
  return reduce_tree(NumberTree<T>{}, Numbers<T>{x, n}, leaf,
                     [](T left, T right) { return T(left + right); });
}

void join_numbers(BinaryKernel join, std::size_t item, const char* x, std::int64_t n, char* y,
                  Scratch& scratch) {
  const auto bytes = item * std::size_t(kReplicaTree.levels(n));
  char* levels = static_cast<char*>(scratch.take(bytes));
  const auto at = [&](int level) { return levels + item * std::size_t(level); };
  walk_tree(
      kReplicaTree, TreeRange{0, n},
      [&](TreeRange of, int level) {
        std::memcpy(at(level), x + item * std::size_t(of.begin), item);
      },
      [&](int level) { join(at(level), at(level + 1), at(level), 1, 1, 1); });
  std::memcpy(y, levels, item);
}

// A reduction over axis 0, where the examples are.
struct BatchReduction {
  ReduceFn fn;
  DType dtype;
  BinaryFn join;
  bool number;                    // a result of one element
  const char* x;                  // the first example
  std::int64_t example_size;      // elements
  std::int64_t rows_per_example;  // that are added to each other
  std::int64_t columns;           // of the result
  AxisGroups row;                 // the groups behind the examples, which make a row of it
  bool row_is_reduced;
  ColumnReduceKernel column_reduce;

  std::int64_t item() const { return std::int64_t(size_of(dtype)); }
  const char* example(std::int64_t i) const { return x + i * example_size * item(); }
};

// Examples that are on another axis are brought to the front: the same tree for the same examples.
View with_examples_first(const View& x, std::uint32_t& mask, Scratch& scratch) {
  const int axis = x.example_axis;
  View front = x;
  front.data = scratch.take(std::size_t(x.size()) * size_of(x.dtype));
  const std::int64_t rows = x.shape[axis];
  front.shape.erase(axis);
  front.shape.insert(0, rows);
  front.example_axis = 0;
  swap_axes(x.data, x.shape.size(0, axis), rows, x.shape.size(axis + 1, x.shape.rank()),
            size_of(x.dtype), front.data);
  const std::uint32_t before = mask & ((1u << axis) - 1);
  mask = mask >> (axis + 1) << (axis + 1) | before << 1 | 1u;
  return front;
}

// Made where it stays: a copy would wait for each of the small stores.
const BatchReduction* open_rows(ReduceFn fn, BinaryFn join, const View& x, std::uint32_t mask,
                                const KernelArgs& args) {
  AxisGroups groups;  // of one example
  groups.push(x.rows_per_example, mask & 1u);
  for (int axis = 1; axis < x.shape.rank(); ++axis) groups.push(x.shape[axis], mask >> axis & 1u);
  auto* r = new (args.scratch.take(sizeof(BatchReduction))) BatchReduction;
  r->fn = fn;
  r->dtype = x.dtype;
  r->join = join;
  r->number = args.out[0].size() == 1;
  r->x = x.as<const char>();
  r->example_size = x.rows_per_example * x.shape.size(1, x.shape.rank());
  r->rows_per_example = groups.size[0];
  r->columns = 1;
  for (int i = 1; i < groups.count; ++i) {
    r->row.push(groups.size[i], groups.reduced[i]);
    if (!groups.reduced[i]) r->columns *= groups.size[i];
  }
  r->row_is_reduced = r->row.any_reduced();
  r->column_reduce = kernels().column_reduce(fn, x.dtype);
  return r;
}

// One result of every example: [examples][columns].
const char* reduce_each(const BatchReduction& r, std::int64_t begin, std::int64_t end,
                        Scratch& scratch) {
  const std::int64_t examples = end - begin, rows = examples * r.rows_per_example;
  const char* x = r.example(begin);
  const auto take = [&](std::int64_t elements) {
    return static_cast<char*>(scratch.take(std::size_t(elements * r.item())));
  };
  if (r.row_is_reduced) {
    AxisGroups groups;
    groups.push(rows, false);
    for (int i = 0; i < r.row.count; ++i) {
      groups.size[groups.count] = r.row.size[i];
      groups.reduced[groups.count++] = r.row.reduced[i];
    }
    char* reduced = take(rows * r.columns);
    reduce_groups(r.fn, r.dtype, groups, x, reduced, scratch);
    x = reduced;
  }
  if (r.rows_per_example == 1) return x;
  char* each = take(examples * r.columns);
  const std::int64_t step = r.columns * r.item();
  for (std::int64_t i = 0; i < examples; ++i) {
    r.column_reduce(x + i * r.rows_per_example * step, each + i * step, r.rows_per_example,
                    r.columns, r.columns, false);
  }
  return each;
}

// The one number that each example makes.
const char* number_of_each(const BatchReduction& r, std::int64_t begin, std::int64_t end,
                           Scratch& scratch) {
  if (r.example_size == 1) return r.example(begin);
  void* each = scratch.take(std::size_t((end - begin) * r.item()));
  kernels().row_reduce(r.fn, r.dtype)(r.example(begin), each, end - begin, r.example_size);
  return static_cast<const char*>(each);
}

}  // namespace

std::uint32_t axes_mask(std::string_view op_name, const std::vector<std::int64_t>& axes, int rank) {
  std::uint32_t mask = 0;
  for (std::int64_t axis : axes) {
    const std::uint32_t bit = 1u << normalize_axis(axis, rank, op_name);
    if (mask & bit) {
      fail(ErrorKind::kValue, op_name, "axis ", axis, " is named twice in ", to_string(axes),
           "; name each axis once.");
    }
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

bool AxisGroups::any_reduced() const {
  return std::find(reduced, reduced + count, true) != reduced + count;
}

std::int64_t AxisGroups::size_of_first(int last) const {
  std::int64_t n = 1;
  for (int i = 0; i < last; ++i) n *= size[i];
  return n;
}

ReducePass innermost_pass(AxisGroups groups) {
  ReducePass pass;
  pass.reduces = groups.any_reduced();
  if (!pass.reduces) {
    pass.lines.outer = groups.size_of_first(groups.count);
    pass.rest = groups;
    return pass;
  }
  pass.by_lanes = groups.reduced[groups.count - 1];
  // The last kept group, if the innermost one is kept, and the reduced one before it.
  if (!pass.by_lanes) pass.lines.columns = groups.size[--groups.count];
  pass.lines.n = groups.size[--groups.count];
  pass.lines.outer = groups.size_of_first(groups.count);
  if (!pass.by_lanes) groups.push(pass.lines.columns, false);
  pass.rest = groups;
  return pass;
}

void reduce_lines(ReduceFn fn, DType dtype, bool by_lanes, const Lines& lines, std::int64_t column,
                  std::int64_t width, const void* x, void* y) {
  if (by_lanes) return kernels().row_reduce(fn, dtype)(x, y, lines.outer, lines.n);
  const ColumnReduceKernel reduce = kernels().column_reduce(fn, dtype);
  const auto item = std::int64_t(size_of(dtype));
  for (std::int64_t i = 0; i < lines.outer; ++i) {
    reduce(static_cast<const char*>(x) + (i * lines.n * lines.columns + column) * item,
           static_cast<char*>(y) + (i * lines.columns + column) * item, lines.n, width,
           lines.columns, false);
  }
}

void reduce_groups(ReduceFn fn, DType dtype, AxisGroups groups, const void* x, void* y,
                   Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const std::size_t item = size_of(dtype);
  if (!groups.any_reduced()) {
    const std::size_t bytes = item * std::size_t(groups.size_of_first(groups.count));
    if (bytes) std::memcpy(y, x, bytes);
    return;
  }
  while (groups.any_reduced()) {
    const ReducePass pass = innermost_pass(groups);
    groups = pass.rest;
    const auto results = std::size_t(pass.lines.count());
    void* next = groups.any_reduced() ? scratch.take(item * results) : y;
    reduce_lines(fn, dtype, pass.by_lanes, pass.lines, 0, pass.lines.columns, x, next);
    x = next;
  }
}

// Columns are cut where rows of the operand are added as they are.
AccumulatorShape reduction_state(std::span<const View> in, const Attrs& attrs, const View& result) {
  constexpr std::int64_t kGrain = 1024;
  AccumulatorShape state = state_of_result(result);
  state.subtrees = result.size() == 1;
  const View& x = in[0];
  const std::uint32_t mask = axes_mask("reduce", attrs.as<ReduceAttrs>().axes, x.shape.rank());
  if (mask == 1u << x.example_axis && x.rows_per_example == 1) state.column_grain = kGrain;
  return state;
}

const void* open_reduction(ReduceFn fn, BinaryFn join, const KernelArgs& args) {
  std::uint32_t mask =
      axes_mask("reduce", args.attrs.as<ReduceAttrs>().axes, args.in[0].shape.rank());
  if (args.in[0].example_axis <= 0) return open_rows(fn, join, args.in[0], mask, args);
  const View front = with_examples_first(args.in[0], mask, args.scratch);
  return open_rows(fn, join, front, mask, args);
}

void reduction_leaf(const LeafArgs& args) {
  const BatchReduction& r = *static_cast<const BatchReduction*>(args.operands);
  const Scratch::Frame frame(args.scratch);
  std::byte* y = args.state.data[0];
  const char* each = r.number ? number_of_each(r, args.begin, args.end, args.scratch)
                              : reduce_each(r, args.begin, args.end, args.scratch);
  if (args.first && args.block.columns == r.columns) {
    r.column_reduce(each, y, args.end - args.begin, r.columns, r.columns, false);
    return;
  }
  // Rows that are handed over together would be joined before the sum so far is added.
  for (std::int64_t i = 0; i < args.end - args.begin; ++i) {
    r.column_reduce(each + (i * r.columns + args.block.column) * r.item(), y, 1, args.block.columns,
                    r.columns, i > 0 || !args.first);
  }
}

// Leaves of one number are joined without a call for each.
void reduction_subtree(const LeafArgs& args) {
  const BatchReduction& r = *static_cast<const BatchReduction*>(args.operands);
  const std::int64_t examples = args.end - args.begin;
  const Scratch::Frame frame(args.scratch);
  const char* each = number_of_each(r, args.begin, args.end, args.scratch);
  char* y = args.state.as<char>();
  if (r.fn == ReduceFn::kSum && is_floating(r.dtype)) {
    visit<kFloats & kComputed>("reduce_sum", r.dtype, [&]<class T>() {
      static_assert(kSumsInPlace<T>);
      *reinterpret_cast<T*>(y) = sum_numbers(reinterpret_cast<const T*>(each), examples);
    });
  } else {
    const BinaryKernel join = kernels().binary(r.join, r.dtype);
    join_numbers(join, size_of(r.dtype), each, examples, y, args.scratch);
  }
}

void reduction_neutral(ReduceFn fn, const NeutralArgs& args) {
  kernels().column_reduce(fn, args.dtype)(nullptr, args.state.data[0], 0, args.block.columns,
                                          args.block.columns, false);
}

}  // namespace samegrad
