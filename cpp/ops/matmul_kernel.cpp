// Matrix products: which matrices meet, packing, and leaves of the tree over examples.
#include "ops/matmul_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/transpose.h"
#include "ops/tree_rows.h"
#include "ops/wide_product.h"
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
  bool in_panels;  // the packed form is one panel after the other

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
  return {kernels().product(in[0].dtype),
          size_of(in[0].dtype),
          transpose_a,
          transpose_b,
          a[axes_a.kept],
          a[axes_a.contracted],
          b[axes_b.kept],
          in[0].as<const char>(),
          in[1].as<const char>(),
          nullptr,
          is_floating(in[0].dtype)};
}

WideProduct wide_product(const Multiplication& c, std::span<const RowPiece> rows,
                         const Epilogue* epilogue) {
  return {.pieces = rows,
          .k = c.k,
          .n = c.n,
          .b = c.b,
          .transposed = c.transpose_b,
          .first_column = 0,
          .columns = c.n,
          .epilogue = epilogue,
          .scratch = nullptr};
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

bool is_worth_threads(const ParallelFor* parallel, std::int64_t work) {
  return parallel && parallel->threads() > 1 && work >= thresholds().parallel_product_work;
}

// Splits [0, rows) into parts that are whole tiles of every variant and runs them in parallel.
template <class F>
void for_row_parts(const KernelArgs& args, std::int64_t rows, std::int64_t work, const F& f) {
  constexpr std::int64_t kTile = 24;
  if (!is_worth_threads(args.parallel, work)) {
    f(std::int64_t(0), rows);
    return;
  }
  const std::int64_t parts = thresholds().parts_per_thread * args.parallel->threads();
  const std::int64_t height = ((rows + parts - 1) / parts + kTile - 1) / kTile * kTile;
  struct RowParts {
    const F& f;
    std::int64_t rows, height;
  } const parts_of{f, rows, height};
  args.parallel->run((rows + height - 1) / height, [&parts_of](std::int64_t part) {
    const std::int64_t begin = part * parts_of.height;
    parts_of.f(begin, std::min(begin + parts_of.height, parts_of.rows));
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

// Rows of several pieces times one packed matrix: whole panels of it are a thread's, and parts of
// the rows where it has too few.
class PackedProduct {
 public:
  PackedProduct(const Multiplication& c, std::span<const RowPiece> pieces, const void* packed,
                const Epilogue* epilogue)
      : c_(c), pieces_(pieces), packed_(static_cast<const std::byte*>(packed)) {
    if (epilogue) epilogue_ = *epilogue;
    for (const RowPiece& piece : pieces) rows_ += piece.rows;
  }

  void run(const ParallelFor* parallel) {
    if (!is_worth_threads(parallel, rows_ * c_.k * c_.n)) return multiply({0, c_.n}, 0, 1);
    const std::int64_t wanted = thresholds().parts_per_thread * parallel->threads();
    // Only panels lie one after the other.
    const std::int64_t panels = c_.in_panels ? (c_.n + kWidestPanel - 1) / kWidestPanel : 1;
    const std::int64_t width =
        (panels + wanted - 1) / wanted * (c_.in_panels ? kWidestPanel : c_.n);
    const std::int64_t across = (c_.n + width - 1) / width;
    const std::int64_t down = std::max<std::int64_t>(1, wanted / across);
    parallel->run(across * down, [&](std::int64_t i) {
      const std::int64_t first = i % across * width;
      multiply({first, std::min(width, c_.n - first)}, i / across, down);
    });
  }

 private:
  struct Columns {
    std::int64_t first, count;
  };

  // Part number `part` of the rows of each piece, in whole tiles of every variant.
  void multiply(Columns columns, std::int64_t part, std::int64_t parts) const {
    constexpr std::int64_t kTile = 24;
    const auto item = std::int64_t(c_.item);
    Epilogue epilogue = epilogue_;
    if (epilogue.bias) {
      epilogue.bias = static_cast<const std::byte*>(epilogue.bias) + columns.first * item;
    }
    for (const RowPiece& piece : pieces_) {
      const std::int64_t height = ((piece.rows + parts - 1) / parts + kTile - 1) / kTile * kTile;
      const std::int64_t begin = std::min(part * height, piece.rows);
      const std::int64_t end = std::min(begin + height, piece.rows);
      if (begin == end) continue;
      c_.product.matmul(static_cast<const std::byte*>(piece.a) + begin * c_.k * item, end - begin,
                        c_.k, c_.k, packed_ + columns.first * c_.k * item, columns.count,
                        static_cast<std::byte*>(piece.y) + (begin * c_.n + columns.first) * item,
                        c_.n, &epilogue);
    }
  }

  const Multiplication& c_;
  std::span<const RowPiece> pieces_;
  const std::byte* packed_;
  Epilogue epilogue_ = {};
  std::int64_t rows_ = 0;
};

// All matrices but those whose contraction is the tree.
void multiply(const KernelArgs& args, const Multiplication& c, const Epilogue* epilogue) {
  const Shape& a = args.in[0].shape;
  const Shape& b = args.in[1].shape;
  Scratch::Frame frame(args.scratch);
  const auto prepared = static_cast<const char*>(args.prepared);
  if (c.packs() && !c.transpose_a && b.size(0, b.rank() - 2) == 1) {
    const std::int64_t rows = a.size(0, a.rank() - 1);
    const RowPiece all{c.a, c.y, rows};
    if (prepared) return PackedProduct(c, {&all, 1}, prepared, epilogue).run(args.parallel);
    return multiply_wide(wide_product(c, {&all, 1}, epilogue), args.in[0].dtype, args.parallel,
                         args.scratch);
  }
  void* packed = c.packs() && !prepared ? args.scratch.take(c.packed_bytes()) : nullptr;
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

// aᵀ · b of a[rows][m] and b[rows][n] whose rows belong to examples, for every matrix of the
// result.
struct TreeProduct {
  Multiplication c;
  DType dtype;
  std::int64_t rows_per_example = 0;
  bool by_example = false;                 // a leaf is too long for one chain
  std::int64_t count = 0;                  // of matrices of the result
  const std::int64_t* matrices = nullptr;  // of a and of b, for each
};

// A leaf is one chain over its rows unless that gets too long: then it is one for each example.
bool is_long(std::int64_t rows_per_example) {
  return kLeafExamples * rows_per_example > kContractionBlock;
}

// The operand with its contraction as the first axis of every matrix.
const char* turned(const char* x, std::int64_t matrices, std::int64_t rows, std::int64_t columns,
                   std::size_t item, Scratch& scratch) {
  const std::int64_t bytes = rows * columns * std::int64_t(item);
  char* y = static_cast<char*>(scratch.take(std::size_t(matrices * bytes)));
  for (std::int64_t i = 0; i < matrices; ++i) {
    swap_axes(x + i * bytes, rows, columns, 1, item, y + i * bytes);
  }
  return y;
}

void multiply_leaf(const TreeProduct& p, const LeafArgs& args, const Block& block,
                   std::int64_t matrix, std::byte* y) {
  const Multiplication& c = p.c;
  const auto item = std::int64_t(c.item);
  const char* a = c.a + p.matrices[2 * matrix] * c.a_bytes() + block.row * item;
  const char* b = c.b + p.matrices[2 * matrix + 1] * c.b_bytes() + block.column * item;
  const auto multiply_examples = [&](std::int64_t begin, std::int64_t end, void* to,
                                     std::int64_t stride, bool accumulate) {
    const std::int64_t first = begin * p.rows_per_example;
    c.product.matmul_transposed(a + first * c.m * item, c.m, b + first * c.n * item, c.n,
                                (end - begin) * p.rows_per_example, block.rows, block.columns, to,
                                stride, accumulate);
  };
  if (!p.by_example) {
    return multiply_examples(args.begin, args.end, y, args.state.stride, !args.first);
  }
  const Scratch::Frame frame(args.scratch);
  const State left{{y}, args.state.stride};
  const State right{{static_cast<std::byte*>(args.scratch.take(std::size_t(block.size() * item)))},
                    block.columns};
  for (std::int64_t i = args.begin; i < args.end; ++i) {
    const bool first = args.first && i == args.begin;
    const State& to = first ? left : right;
    multiply_examples(i, i + 1, to.data[0], to.stride, false);
    if (!first) join_elements(BinaryFn::k_add, p.dtype, block, left, right);
  }
}

void join_halves(const TreeProduct& p, const LeafArgs& args, const Block& block,
                 std::int64_t matrix, std::byte* y);

// Leaves and joins of a whole subtree, if few enough examples for their operands to stay in cache.
void multiply_subtree(const TreeProduct& p, const LeafArgs& args, const Block& block,
                      std::int64_t matrix, std::byte* y) {
  const std::int64_t examples = args.end - args.begin;
  if (examples <= kLeafExamples) return multiply_leaf(p, args, block, matrix, y);
  if (examples * p.rows_per_example > thresholds().product_subtree_rows) {
    return join_halves(p, args, block, matrix, y);
  }
  const Multiplication& c = p.c;
  const auto item = std::int64_t(c.item);
  const std::int64_t first = args.begin * p.rows_per_example;
  const char* a = c.a + p.matrices[2 * matrix] * c.a_bytes() + (first * c.m + block.row) * item;
  const char* b =
      c.b + p.matrices[2 * matrix + 1] * c.b_bytes() + (first * c.n + block.column) * item;
  const Scratch::Frame frame(args.scratch);
  void* scratch = args.scratch.take(
      c.product.matmul_tree_scratch_bytes(examples, p.rows_per_example, block.rows, block.columns));
  c.product.matmul_tree(a, c.m, b, c.n, examples, p.rows_per_example, block.rows, block.columns, y,
                        args.state.stride, scratch);
}

void join_halves(const TreeProduct& p, const LeafArgs& args, const Block& block,
                 std::int64_t matrix, std::byte* y) {
  fold_halves(args, block, {{y}, args.state.stride}, p.dtype,
              [&](std::int64_t begin, std::int64_t end, const State& state) {
                multiply_subtree(p, {args.operands, begin, end, block, state, true, args.scratch},
                                 block, matrix, state.data[0]);
              });
}

// Of all matrices of the result that the block has a part of.
template <auto kMultiply>
void multiply_matrices(const LeafArgs& args) {
  const TreeProduct& p = *static_cast<const TreeProduct*>(args.operands);
  const Block& all = args.block;
  if (p.count == 1) return kMultiply(p, args, all, 0, args.state.data[0]);
  if (all.size() == 0) return;
  if (all.row / p.c.m == (all.row + all.rows - 1) / p.c.m) {
    const std::int64_t matrix = all.row / p.c.m;
    const Block block{all.row % p.c.m, all.column, all.rows, all.columns};
    return kMultiply(p, args, block, matrix, args.state.data[0]);
  }
  const Block block{0, all.column, p.c.m, all.columns};
  for (std::int64_t row = 0; row < all.rows; row += p.c.m) {
    kMultiply(p, args, block, (all.row + row) / p.c.m,
              args.state.data[0] + row * args.state.stride * std::int64_t(p.c.item));
  }
}

Multiplication multiplication_of(std::span<const View> in, const Attrs& of) {
  const auto& attrs = of.as<MatmulAttrs>();
  return multiplication(in, attrs.transpose_a, attrs.transpose_b);
}

}  // namespace

void matmul_kernel(const KernelArgs& args) {
  Multiplication c = multiplication_of(args.in, args.attrs);
  c.y = args.out[0].as<char>();
  if (args.out[0].size() > 0) multiply(args, c, nullptr);
}

// Blocks are whole tiles of every variant, and lie in one matrix of the result or hold whole ones.
StateShape product_state(std::span<const View> in, const Attrs&, const View& result) {
  StateShape state = state_of_result(result);
  const Shape& y = result.shape;
  state.columns = y[y.rank() - 1];
  state.rows = y.size(0, y.rank() - 1);
  const bool one_matrix = y.rank() == 2;
  state.row_grain = one_matrix ? kProductRowGrain : y[y.rank() - 2];
  state.column_grain = kProductColumnGrain;
  state.subtrees =
      kernels().product(result.dtype).matmul_tree != nullptr && !is_long(in[0].rows_per_example);
  if (state.subtrees) {
    state.block_bytes = thresholds().product_block_bytes;
    state.block_columns = thresholds().product_block_columns;
  }
  return state;
}

const void* open_product(const KernelArgs& args) {
  const View& y = args.out[0];
  // Made where it stays: a copy would wait for each of the small stores.
  auto* p = new (args.scratch.take(sizeof(TreeProduct)))
      TreeProduct{multiplication_of(args.in, args.attrs), y.dtype};
  Multiplication& c = p->c;
  const auto matrices = [](const View& x) { return x.shape.size(0, x.shape.rank() - 2); };
  if (!c.transpose_a) c.a = turned(c.a, matrices(args.in[0]), c.m, c.k, c.item, args.scratch);
  if (c.transpose_b) c.b = turned(c.b, matrices(args.in[1]), c.n, c.k, c.item, args.scratch);
  auto* of = static_cast<std::int64_t*>(
      args.scratch.take(std::size_t(2 * matrices(y)) * sizeof(std::int64_t)));
  for_each_matrix(args.in[0].shape, args.in[1].shape, y.shape,
                  [&](std::int64_t i, std::int64_t j, std::int64_t r) {
                    of[2 * r] = i;
                    of[2 * r + 1] = j;
                  });
  p->rows_per_example = c.k / args.examples;
  p->by_example = is_long(p->rows_per_example);
  p->count = matrices(y);
  p->matrices = of;
  return p;
}

void product_leaf(const LeafArgs& args) {
  multiply_matrices<multiply_leaf>(args);
}

void product_subtree(const LeafArgs& args) {
  multiply_matrices<multiply_subtree>(args);
}

void matmul_all_rows(const RowsArgs& args) {
  const std::size_t replicas = args.replicas.size();
  if (replicas == 0) return;
  auto* pieces = static_cast<RowPiece*>(args.scratch.take(replicas * sizeof(RowPiece)));
  for (std::size_t r = 0; r < replicas; ++r) {
    const View& a = args.replicas[r][0];
    const std::int64_t rows = a.shape.size(0, a.shape.rank() - 1);
    pieces[r] = {a.data, args.replicas[r].back().data, rows};
  }
  const std::span<const View> views = args.replicas[0];
  const Multiplication c = multiplication_of(views, args.attrs);
  const auto* with_bias = args.attrs.get_if<MatmulBiasAttrs>();
  const Epilogue epilogue = with_bias ? Epilogue{views[2].data, with_bias->activation} : Epilogue{};
  const std::span<const RowPiece> all(pieces, replicas);
  if (args.prepared) return PackedProduct(c, all, args.prepared, &epilogue).run(&args.parallel);
  multiply_wide(wide_product(c, all, &epilogue), views[0].dtype, &args.parallel, args.scratch);
}

bool is_product_of_rows(const Attrs& attrs) {
  return !attrs.as<MatmulAttrs>().transpose_a;
}

// Of the operands that are packed at a time, and of the right half on each level above them.
std::size_t product_fold_bytes(const FoldArgs& args) {
  const DType dtype = args.result.dtype;
  const Block& block = args.block;
  const auto half = std::size_t(block.size()) * size_of(dtype) + kAlignment;
  const std::int64_t rows = std::max(thresholds().product_subtree_rows, kLeafExamples);
  return kernels().product(dtype).matmul_tree_scratch_bytes(rows, 1, block.rows, block.columns) +
         kAlignment + std::size_t(tree_levels(args.examples, 1)) * half;
}

void matmul_bias_kernel(const KernelArgs& args) {
  const auto& attrs = args.attrs.as<MatmulBiasAttrs>();
  Multiplication c = multiplication(args.in, false, attrs.transpose_b);
  c.y = args.out[0].as<char>();
  if (args.out[0].size() == 0) return;
  const Epilogue epilogue{args.in[2].data, attrs.activation};
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
