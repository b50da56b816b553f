// Matrix products: which matrices meet, packing, and the tree over examples.
#include "ops/matmul_kernel.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/transpose.h"
#include "tensor/tree.h"

namespace samegrad {
namespace {

// One call of the kernel, in matrices: y[m][n] = op(a)[m][k] · op(b)[k][n].
struct Multiplication {
  const ProductKernels& product;
  std::size_t item;
  bool transpose_a, transpose_b;
  std::int64_t m, k, n;
  const char* a;
  const char* b;
  char* y;

  // op(a)ᵀ · b reads b as it is; everything else reads packed panels of b.
  bool packs() const { return !transpose_a || transpose_b; }
  std::int64_t a_bytes() const { return m * k * std::int64_t(item); }
  std::int64_t b_bytes() const { return k * n * std::int64_t(item); }
  std::int64_t y_bytes() const { return m * n * std::int64_t(item); }
  std::size_t packed_bytes() const {
    return (product.packed_bytes(k, n) + kAlignment - 1) / kAlignment * kAlignment;
  }
  void pack(const void* matrix, void* packed) const {
    product.pack(matrix, k, n, transpose_b ? k : n, transpose_b, packed);
  }
};

Multiplication multiplication(std::span<const View> in, bool transpose_a, bool transpose_b) {
  const Shape& a = in[0].shape;
  const Shape& b = in[1].shape;
  const MatrixAxes axes_a = left_axes(a.rank(), transpose_a);
  const MatrixAxes axes_b = right_axes(b.rank(), transpose_b);
  return {*kernels().product(in[0].dtype),
          size_of(in[0].dtype),
          transpose_a,
          transpose_b,
          a[axes_a.kept],
          a[axes_a.contracted],
          b[axes_b.kept],
          in[0].as<const char>(),
          in[1].as<const char>(),
          nullptr};
}

// Calls f(matrix of a, matrix of b, matrix of y) for every matrix of the result.
template <class F>
void for_each_matrix(const Shape& a, const Shape& b, const Shape& y, const F& f) {
  const int leading = y.rank() - 2;
  std::array<std::int64_t, kMaxRank> step_a{}, step_b{}, at{};
  const auto fill = [leading, &y](const Shape& x, std::array<std::int64_t, kMaxRank>& step) {
    std::int64_t size = 1;
    for (int axis = leading - 1; axis >= 0; --axis) {
      const int own = axis - (y.rank() - x.rank());
      const std::int64_t dim = own >= 0 ? x[own] : 1;
      step[std::size_t(axis)] = dim == 1 ? 0 : size;
      size *= dim;
    }
  };
  fill(a, step_a);
  fill(b, step_b);
  const std::int64_t count = y.size(0, leading);
  std::int64_t of_a = 0, of_b = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    f(of_a, of_b, i);
    for (int axis = leading - 1; axis >= 0; --axis) {
      const auto s = std::size_t(axis);
      of_a += step_a[s];
      of_b += step_b[s];
      if (++at[s] < y[axis]) break;
      of_a -= step_a[s] * y[axis];
      of_b -= step_b[s] * y[axis];
      at[s] = 0;
    }
  }
}

// Splits [0, rows) into parts that are whole tiles of every variant and runs them in parallel.
template <class F>
void for_row_parts(const KernelArgs& args, std::int64_t rows, std::int64_t work, const F& f) {
  constexpr std::int64_t kTile = 24;
  if (!args.parallel || args.parallel->threads() < 2 || work < thresholds().parallel_product_work) {
    f(std::int64_t(0), rows);
    return;
  }
  const std::int64_t parts = thresholds().parts_per_thread * args.parallel->threads();
  const std::int64_t height = ((rows + parts - 1) / parts + kTile - 1) / kTile * kTile;
  struct Context {
    const F& f;
    std::int64_t rows, height;
  } const context{f, rows, height};
  args.parallel->run((rows + height - 1) / height, [&context](std::int64_t part) {
    const std::int64_t begin = part * context.height;
    context.f(begin, std::min(begin + context.height, context.rows));
  });
}

void multiply_rows(const KernelArgs& args, const Multiplication& c, const char* a,
                   const void* packed, char* y, std::int64_t rows, const Epilogue* epilogue) {
  for_row_parts(args, rows, rows * c.k * c.n, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t item = std::int64_t(c.item);
    c.product.matmul(a + begin * c.k * item, end - begin, c.k, c.k, packed, c.n,
                     y + begin * c.n * item, c.n, epilogue);
  });
}

void multiply_transposed(const KernelArgs& args, const Multiplication& c, const char* a,
                         const char* b, char* y) {
  for_row_parts(args, c.m, c.m * c.k * c.n, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t item = std::int64_t(c.item);
    c.product.matmul_transposed(a + begin * item, c.m, b, c.n, c.k, end - begin, c.n,
                                y + begin * c.n * item, c.n, false);
  });
}

// All matrices but those whose contraction is the tree.
void multiply(const KernelArgs& args, const Multiplication& c, const Epilogue* epilogue) {
  const Shape& a = args.in[0].shape;
  const Shape& b = args.in[1].shape;
  Scratch::Frame frame(args.scratch);
  const auto prepared = static_cast<const char*>(args.prepared);
  void* packed = c.packs() && !prepared ? args.scratch.take(c.packed_bytes()) : nullptr;
  if (c.packs() && !c.transpose_a && b.size(0, b.rank() - 2) == 1) {
    if (packed) c.pack(c.b, packed);
    const std::int64_t rows = a.size(0, a.rank() - 1);
    multiply_rows(args, c, c.a, packed ? packed : prepared, c.y, rows, epilogue);
    return;
  }
  char* turned = c.packs() && c.transpose_a
                     ? static_cast<char*>(args.scratch.take(std::size_t(c.a_bytes())))
                     : nullptr;
  std::int64_t packed_matrix = -1;
  for_each_matrix(a, b, args.out[0].shape, [&](std::int64_t i, std::int64_t j, std::int64_t r) {
    const char* left = c.a + i * c.a_bytes();
    char* y = c.y + r * c.y_bytes();
    if (!c.packs()) {
      multiply_transposed(args, c, left, c.b + j * c.b_bytes(), y);
      return;
    }
    if (packed && packed_matrix != j) c.pack(c.b + (packed_matrix = j) * c.b_bytes(), packed);
    if (turned) swap_axes(left, c.k, c.m, 1, c.item, turned);
    const void* right = packed ? packed : prepared + j * std::int64_t(c.packed_bytes());
    multiply_rows(args, c, turned ? turned : left, right, y, c.m, epilogue);
  });
}

// The product aᵀ · b of a[rows][m] and b[rows][n] as the tree over the examples that own the rows.
class TreeProduct {
 public:
  TreeProduct(const KernelArgs& args, const Multiplication& c)
      : args_(args),
        c_(c),
        item_(std::int64_t(c.item)),
        rows_per_example_(args.examples > 0 ? c.k / args.examples : 0),
        add_(kernels().binary(BinaryFn::k_add, args.in[0].dtype)) {}

  void run(const char* a, const char* b, char* y) const {
    if (args_.examples <= kLeafExamples) {
      c_.product.matmul_transposed(a, c_.m, b, c_.n, c_.k, c_.m, c_.n, y, c_.n, args_.accumulate);
      return;
    }
    assert(!args_.accumulate);
    const std::int64_t columns = std::min(c_.n, thresholds().product_tree_columns);
    const std::int64_t fitting =
        thresholds().product_tree_bytes / std::max<std::int64_t>(columns * item_, 1);
    const std::int64_t height = std::clamp<std::int64_t>(fitting / 24 * 24, 24, c_.m + 24);
    const int levels = tree_levels(args_.examples, kLeafExamples);
    Scratch::Frame frame(args_.scratch);
    const std::int64_t bytes = height * columns * item_;
    char* partials = static_cast<char*>(args_.scratch.take(std::size_t(levels * bytes)));
    for (std::int64_t m = 0; m < c_.m; m += height) {
      for (std::int64_t n = 0; n < c_.n; n += columns) {
        const Block block{m, n, std::min(height, c_.m - m), std::min(columns, c_.n - n)};
        sum_block(block, a, b, y, partials, bytes);
      }
    }
  }

 private:
  struct Block {
    std::int64_t row, column, rows, columns;
  };

  void sum_block(const Block& block, const char* a, const char* b, char* y, char* partials,
                 std::int64_t bytes) const {
    char* target = y + (block.row * c_.n + block.column) * item_;
    const bool in_place = block.columns == c_.n;
    const auto partial = [&](int level) {
      return in_place && level == 0 ? target : partials + level * bytes;
    };
    walk_tree(
        0, args_.examples, kLeafExamples, 0,
        [&](std::int64_t begin, std::int64_t end, int level) {
          const std::int64_t first = begin * rows_per_example_;
          c_.product.matmul_transposed(a + (first * c_.m + block.row) * item_, c_.m,
                                       b + (first * c_.n + block.column) * item_, c_.n,
                                       (end - begin) * rows_per_example_, block.rows, block.columns,
                                       partial(level), block.columns, false);
        },
        [&](int level) {
          add_(partial(level), partial(level + 1), partial(level), block.rows * block.columns, 1,
               1);
        });
    if (in_place) return;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      std::memcpy(target + r * c_.n * item_, partials + r * block.columns * item_,
                  std::size_t(block.columns * item_));
    }
  }

  const KernelArgs& args_;
  const Multiplication& c_;
  std::int64_t item_;
  std::int64_t rows_per_example_;
  BinaryKernel add_;
};

void multiply_tree(const KernelArgs& args, const Multiplication& c) {
  const TreeProduct product(args, c);
  Scratch::Frame frame(args.scratch);
  const auto turned = [&](bool turn, std::int64_t bytes) {
    return turn ? static_cast<char*>(args.scratch.take(std::size_t(bytes))) : nullptr;
  };
  char* turned_a = turned(!c.transpose_a, c.a_bytes());
  char* turned_b = turned(c.transpose_b, c.b_bytes());
  for_each_matrix(args.in[0].shape, args.in[1].shape, args.out[0].shape,
                  [&](std::int64_t i, std::int64_t j, std::int64_t r) {
                    const char* a = c.a + i * c.a_bytes();
                    const char* b = c.b + j * c.b_bytes();
                    if (turned_a) swap_axes(a, c.m, c.k, 1, c.item, turned_a);
                    if (turned_b) swap_axes(b, c.n, c.k, 1, c.item, turned_b);
                    product.run(turned_a ? turned_a : a, turned_b ? turned_b : b,
                                c.y + r * c.y_bytes());
                  });
}

bool contracts_examples(const KernelArgs& args, bool transpose_a, bool transpose_b) {
  const View& a = args.in[0];
  const View& b = args.in[1];
  return a.example_axis >= 0 && b.example_axis >= 0 &&
         a.example_axis == left_axes(a.shape.rank(), transpose_a).contracted &&
         b.example_axis == right_axes(b.shape.rank(), transpose_b).contracted;
}

Multiplication multiplication_of(std::span<const View> in, const Attrs& attrs) {
  const bool transpose_a = attrs.find("transpose_a") && attrs.flag("transpose_a");
  return multiplication(in, transpose_a, attrs.flag("transpose_b"));
}

}  // namespace

void matmul_kernel(const KernelArgs& args) {
  const bool transpose_a = args.attrs.flag("transpose_a");
  const bool transpose_b = args.attrs.flag("transpose_b");
  Multiplication c = multiplication(args.in, transpose_a, transpose_b);
  c.y = args.out[0].as<char>();
  if (args.out[0].size() == 0) return;
  if (contracts_examples(args, transpose_a, transpose_b)) {
    multiply_tree(args, c);
  } else {
    multiply(args, c, nullptr);
  }
}

void matmul_bias_kernel(const KernelArgs& args) {
  Multiplication c = multiplication(args.in, false, args.attrs.flag("transpose_b"));
  c.y = args.out[0].as<char>();
  if (args.out[0].size() == 0) return;
  const bool relu = args.attrs.string("activation") == "relu";
  const Epilogue epilogue{args.in[2].data, relu ? Activation::kRelu : Activation::kNone};
  multiply(args, c, &epilogue);
}

std::size_t matmul_packed_bytes(std::span<const View> in, const Attrs& attrs) {
  const Multiplication c = multiplication_of(in, attrs);
  if (!c.packs()) return 0;
  return std::size_t(in[1].shape.size(0, in[1].shape.rank() - 2)) * c.packed_bytes();
}

void matmul_pack(std::span<const View> in, const Attrs& attrs, void* prepared) {
  const Multiplication c = multiplication_of(in, attrs);
  if (!c.packs()) return;
  const std::int64_t matrices = in[1].shape.size(0, in[1].shape.rank() - 2);
  for (std::int64_t i = 0; i < matrices; ++i) {
    c.pack(c.b + i * c.b_bytes(),
           static_cast<char*>(prepared) + i * std::int64_t(c.packed_bytes()));
  }
}

}  // namespace samegrad
