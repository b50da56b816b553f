// Products whose contraction is the tree over examples: leaves, whole subtrees, and operands that
// all blocks of the result share.
#include <algorithm>
#include <limits>

#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "ops/attributes.h"
#include "ops/gemm_call.h"
#include "ops/transpose.h"
#include "ops/tree_reduction.h"

namespace samegrad {
namespace {

// Columns of a block whose leaves are long: each packs as many rows of both operands, so it is
// about as wide as it is high.
constexpr std::int64_t kLongLeafColumns = 256;

// aᵀ · b of a[rows][m] and b[rows][n] whose rows belong to examples, for every matrix of the
// result.
struct TreeProduct {
  GemmCall c;
  DType dtype;
  std::int64_t rows_per_example = 0;
  bool by_example = false;                 // a leaf is too long for one chain
  std::int64_t count = 0;                  // of matrices of the result
  const std::int64_t* matrices = nullptr;  // of a and of b, for each
  // All of a and b in the order in which subtrees are multiplied, if they are packed once for all
  // blocks.
  const char *packed_a = nullptr, *packed_b = nullptr;
};

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

void multiply_leaf(const TreeProduct& p, const LeafArgs& args, const Rect& block,
                   std::int64_t matrix, std::byte* y) {
  const GemmCall& c = p.c;
  const auto item = std::int64_t(c.item);
  const char* a = c.a + p.matrices[2 * matrix] * c.a_bytes() + block.row * item;
  const char* b = c.b + p.matrices[2 * matrix + 1] * c.b_bytes() + block.column * item;
  const auto multiply_examples = [&](std::int64_t begin, std::int64_t end, void* to,
                                     std::int64_t stride, bool accumulate) {
    const std::int64_t first = begin * p.rows_per_example;
    const std::int64_t rows = (end - begin) * p.rows_per_example;
    const Scratch::Frame frame(args.scratch);
    c.product.matmul_transposed(
        a + first * c.m * item, c.m, b + first * c.n * item, c.n, rows, block.rows, block.columns,
        to, stride, accumulate,
        take_workspace(c.product, args.scratch, rows, block.rows, block.columns));
  };
  if (!p.by_example) {
    return multiply_examples(args.begin, args.end, y, args.state.stride, !args.first);
  }
  const Scratch::Frame frame(args.scratch);
  const Accumulator left{{y}, args.state.stride};
  const Accumulator right{
      {static_cast<std::byte*>(args.scratch.take(std::size_t(block.size() * item)))},
      block.columns};
  for (std::int64_t i = args.begin; i < args.end; ++i) {
    const bool first = args.first && i == args.begin;
    const Accumulator& to = first ? left : right;
    multiply_examples(i, i + 1, to.data[0], to.stride, false);
    if (!first) join_elements(BinaryFn::k_add, p.dtype, block, left, right);
  }
}

PackedTree part_of_packed(const TreeProduct& p, const LeafArgs& args, const Rect& block) {
  const auto item = std::int64_t(p.c.item);
  return {p.packed_a + block.row * p.c.k * item,
          p.packed_b + block.column * p.c.k * item,
          p.c.k,
          args.begin * p.rows_per_example,
          args.end - args.begin,
          p.rows_per_example,
          block.rows,
          block.columns,
          args.prefetch};
}

// Packs what the block needs of the examples.
PackedTree packed_subtree(const TreeProduct& p, const LeafArgs& args, const Rect& block,
                          std::int64_t matrix) {
  const GemmCall& c = p.c;
  const auto item = std::int64_t(c.item);
  const std::int64_t first = args.begin * p.rows_per_example;
  const std::int64_t rows = (args.end - args.begin) * p.rows_per_example;
  const char* a = c.a + p.matrices[2 * matrix] * c.a_bytes() + (first * c.m + block.row) * item;
  const char* b =
      c.b + p.matrices[2 * matrix + 1] * c.b_bytes() + (first * c.n + block.column) * item;
  void* left = args.scratch.take(c.product.tree_packed_bytes(rows, block.rows, false));
  void* right = args.scratch.take(c.product.tree_packed_bytes(rows, block.columns, true));
  c.product.tree_pack(a, c.m, rows, block.rows, false, left);
  c.product.tree_pack(b, c.n, rows, block.columns, true, right);
  return {left,       right,         rows,         0, args.end - args.begin, p.rows_per_example,
          block.rows, block.columns, args.prefetch};
}

// Leaves and joins of a subtree of few enough examples for their operands to stay in cache.
void multiply_packed(const TreeProduct& p, const LeafArgs& args, const Rect& block,
                     std::int64_t matrix, std::byte* y) {
  const std::int64_t examples = args.end - args.begin;
  if (examples <= kLeafExamples) return multiply_leaf(p, args, block, matrix, y);
  const Scratch::Frame frame(args.scratch);
  const PackedTree packed =
      p.packed_a ? part_of_packed(p, args, block) : packed_subtree(p, args, block, matrix);
  void* scratch = args.scratch.take(p.c.product.matmul_tree_scratch_bytes(examples));
  p.c.product.matmul_tree(packed, y, args.state.stride, scratch);
}

void multiply_subtree(const TreeProduct& p, const LeafArgs& args, const Rect& block,
                      std::int64_t matrix, std::byte* y) {
  const std::int64_t most =
      thresholds().product_subtree_rows / std::max<std::int64_t>(1, p.rows_per_example);
  fold_subtrees(args, most, block, {{y}, args.state.stride}, p.dtype,
                [&](TreeRange of, const Accumulator& state) {
                  const PrefetchBlocks* prefetch = of.end == args.end ? args.prefetch : nullptr;
                  multiply_packed(
                      p,
                      {args.operands, of.begin, of.end, block, state, true, args.scratch, prefetch},
                      block, matrix, state.data[0]);
                });
}

// Multiplies all matrices of the result that intersect the block.
template <auto kMultiply>
void multiply_matrices(const LeafArgs& args) {
  const TreeProduct& p = *static_cast<const TreeProduct*>(args.operands);
  const Rect& all = args.block;
  if (p.count == 1) return kMultiply(p, args, all, 0, args.state.data[0]);
  if (all.size() == 0) return;
  if (all.row / p.c.m == (all.row + all.rows - 1) / p.c.m) {
    const std::int64_t matrix = all.row / p.c.m;
    const Rect block{all.row % p.c.m, all.column, all.rows, all.columns};
    return kMultiply(p, args, block, matrix, args.state.data[0]);
  }
  const Rect block{0, all.column, p.c.m, all.columns};
  for (std::int64_t row = 0; row < all.rows; row += p.c.m) {
    kMultiply(p, args, block, (all.row + row) / p.c.m,
              args.state.data[0] + row * args.state.stride * std::int64_t(p.c.item));
  }
}

// True if several blocks would each pack the same rows, and a packed copy of these rows is small.
// Leaves are multiplied without packing.
bool packs_once(const TreeProduct& p, std::int64_t examples) {
  const GemmCall& c = p.c;
  const auto item = std::int64_t(c.item);
  const bool only_leaves = examples <= kLeafExamples || (kLeafExamples + 1) * p.rows_per_example >
                                                            thresholds().product_subtree_rows;
  return c.product.tree_pack && p.count == 1 && !p.by_example && !only_leaves &&
         c.m * c.n * item > thresholds().product_block_bytes &&
         c.k * (c.m + c.n) * item <= thresholds().product_packed_bytes;
}

// Both operands, some columns at a time.
void pack_once(TreeProduct& p, const KernelArgs& args) {
  const GemmCall& c = p.c;
  const auto pack = [&](const char* x, std::int64_t columns, std::int64_t grain, bool right) {
    auto* to =
        static_cast<char*>(args.scratch.take(c.product.tree_packed_bytes(c.k, columns, right)));
    const std::int64_t parts =
        args.parallel ? thresholds().parts_per_thread * args.parallel->threads() : 1;
    const std::int64_t grains = divide_up(columns, grain);
    const auto run = [&](std::int64_t i) {
      const std::int64_t begin = grains * i / parts * grain;
      const std::int64_t end = std::min(grains * (i + 1) / parts * grain, columns);
      if (begin == end) return;
      const std::int64_t item = std::int64_t(c.item);
      c.product.tree_pack(x + begin * item, columns, c.k, end - begin, right,
                          to + begin * c.k * item);
    };
    if (parts == 1) run(0);
    if (parts > 1) args.parallel->run(parts, run);
    return to;
  };
  p.packed_a = pack(c.a + p.matrices[0] * c.a_bytes(), c.m, kProductRowGrain, false);
  p.packed_b = pack(c.b + p.matrices[1] * c.b_bytes(), c.n, kProductColumnGrain, true);
}

}  // namespace

// Blocks are whole tiles of every variant, and are in one matrix of the result or hold whole ones.
AccumulatorShape product_state(std::span<const View> in, const Attrs&, const View& result) {
  AccumulatorShape state = state_of_result(result);
  const Shape& y = result.shape;
  state.columns = y[y.rank() - 1];
  state.rows = y.size(0, y.rank() - 1);
  const bool one_matrix = y.rank() == 2;
  state.row_grain = one_matrix ? kProductRowGrain : y[y.rank() - 2];
  state.column_grain = kProductColumnGrain;
  state.subtrees = kernels().product(result.dtype).matmul_tree != nullptr &&
                   leaf_is_one_chain(in[0].rows_per_example);
  state.block_bytes = thresholds().product_block_bytes;
  state.block_columns = state.subtrees ? thresholds().product_block_columns : kLongLeafColumns;
  return state;
}

const void* open_product(const KernelArgs& args) {
  const View& y = args.out[0];
  // Made where it stays: a copy would wait for each of the small stores.
  auto* p = new (args.scratch.take(sizeof(TreeProduct)))
      TreeProduct{multiplication_of(args.in, args.attrs), y.dtype};
  GemmCall& c = p->c;
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
  p->by_example = !leaf_is_one_chain(p->rows_per_example);
  p->count = matrices(y);
  p->matrices = of;
  if (packs_once(*p, args.examples)) pack_once(*p, args);
  return p;
}

void product_leaf(const LeafArgs& args) {
  multiply_matrices<multiply_leaf>(args);
}

void product_subtree(const LeafArgs& args) {
  multiply_matrices<multiply_subtree>(args);
}

// The scratch of a fold: operands packed at a time, and a right half on each level above them.
std::size_t product_fold_bytes(const FoldArgs& args) {
  const DType dtype = args.result.dtype;
  const Rect& block = args.block;
  const auto half = std::size_t(block.size()) * size_of(dtype) + kAlignment;
  const std::int64_t rows = std::max(thresholds().product_subtree_rows, kLeafExamples);
  const ProductKernels& product = kernels().product(dtype);
  const auto levels = std::size_t(kReplicaTree.levels(args.examples));
  const std::size_t workspace =
      product.transposed_workspace_bytes(std::numeric_limits<std::int64_t>::max(), block.rows,
                                         block.columns) +
      kAlignment;
  // Without packed subtrees, an example of a long leaf takes a state.
  if (product.matmul_tree == nullptr) return (levels + 1) * half + workspace;
  return product.tree_packed_bytes(rows, block.rows, false) +
         product.tree_packed_bytes(rows, block.columns, true) +
         product.matmul_tree_scratch_bytes(rows) + 3 * kAlignment + levels * half + workspace;
}

}  // namespace samegrad
