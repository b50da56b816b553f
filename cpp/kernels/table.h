// The functions an instruction-set variant offers: arrays in, arrays out.
//
// Every variant (variants.def) is a shared object of its own with one exported symbol,
// samegrad_kernel_table(). What all functions promise, for each variant by itself: the value of an
// output element depends on the values it is made of, never on how many other elements or rows
// there are, where they are in memory, how they are aligned, or on the thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/functions.h"
#include "base/prefetch.h"
#include "kernels/geometry.h"

namespace samegrad {

enum class ReduceFn : std::uint8_t { kSum, kProd, kMax, kMin, kAny, kAll };
enum class ScanFn : std::uint8_t { kSum, kProd };
enum class Activation : std::uint8_t { kNone, kRelu };

// y[i] = f(x[i]); y may be x.
using UnaryKernel = void (*)(const void* x, void* y, std::int64_t n);
// y[i] = f(a[i * a_step], b[i * b_step]); a step is 0 (one value for all) or 1. y may be a or b.
using BinaryKernel = void (*)(const void* a, const void* b, void* y, std::int64_t n, int a_step,
                              int b_step);
// y[i] = condition[i * c_step] ? a[i * a_step] : b[i * b_step]
using SelectKernel = void (*)(const void* condition, const void* a, const void* b, void* y,
                              std::int64_t n, int c_step, int a_step, int b_step);
using CastKernel = void (*)(const void* x, void* y, std::int64_t n);
// y[r] = reduction of x[r][0 … n): in a block of kRowBlock elements, element j goes to lane j % L
// (L: the elements in kLaneBytes, in every variant), each lane is reduced in order, then the lanes
// pairwise (L/2 apart, L/4, … 1); blocks are joined by halving (base/reduction_order.h). n = 0
// gives the neutral element. kAny and kAll take bool.
using RowReduceKernel = void (*)(const void* x, void* y, std::int64_t rows, std::int64_t n);
// y[r] = index of the first largest (smallest) element of x[r][0 … n), as int64. NaN counts as
// largest (smallest), as in NumPy.
using ArgReduceKernel = void (*)(const void* x, std::int64_t* y, std::int64_t rows, std::int64_t n);
// y[c] = x[0][c] then x[1][c], … folded in, row by row, in order, in blocks of kColumnBlock rows,
// which are joined by halving; with accumulate, what y[c] held comes before the result. rows = 0
// without accumulate gives the neutral element. n columns of rows that are `stride` elements apart.
using ColumnReduceKernel = void (*)(const void* x, void* y, std::int64_t rows, std::int64_t n,
                                    std::int64_t stride, bool accumulate);
// y[c] goes on as if x[0][c], x[1][c], … were further rows of its block.
using ColumnFoldKernel = void (*)(const void* x, void* y, std::int64_t rows, std::int64_t n);

// Lines of n elements of x[outer][n][stride], from the first to the last or the other way round:
// the first `width` of each `stride`.
struct ScanLines {
  std::int64_t outer, n, width, stride;
  bool exclusive, reverse;
};
// Element k of a line becomes the sum (product) of elements 0 … k, exclusive: of those before it.
// Products go on from element to element. Of sums, an element is counted in its block of
// kColumnBlock, blocks in a block of blocks, …: what is before each of these is summed first,
// so that the error stays bounded. What is behind an element changes nothing. x is not y.
using ScanKernel = void (*)(const ScanLines& lines, const void* x, void* y, void* scratch);
inline constexpr int kScanRows = 8;  // of `width` elements: what the scratch holds
// y[0] = 0, y[k + 1] = b[k] + a[k] * y[k] along each line; where a[k] is 0, y[k] is left out, even
// if it is infinite or NaN. y is neither a nor b.
using AffineScanKernel = void (*)(const ScanLines& lines, const void* a, const void* b, void* y);

// After a product is accumulated: y = activation(y + bias[column]). Both parts may be absent.
struct Epilogue {
  const void* bias = nullptr;
  Activation activation = Activation::kNone;
};

// Rows of one operand that are behind each other, and where their results go.
struct RowPiece {
  const void* a;
  void* y;
  std::int64_t rows;
};

// y[r][first_column … first_column + columns) = a[r][0 … k) · b for the rows of all pieces. a's row
// stride is k, y's is n; b is [k][n], transposed: it is stored [n][k].
struct WideProduct {
  std::span<const RowPiece> pieces;
  std::int64_t k, n;
  const void* b;
  bool transposed;
  std::int64_t first_column, columns;  // the first one is a multiple of kWidestPanel
  const Epilogue* epilogue;            // or null; the bias has all n columns
  void* scratch;                       // matmul_wide_scratch_bytes(k, columns), on a cache line
  bool fetches = false;                // the next block of b beside the products of the last one
};
// Columns of a product that are cut at multiples of this fill the panels of every variant.
inline constexpr std::int64_t kWidestPanel = 128;

// Products by the tree whose sums are added one after the other, as those of the rounds of a
// loop are: a stack, at whose bottom is what they are added to. A share puts its sum onto it and
// adds up the two topmost ones so many times: once, where it is added by itself; where the tree
// goes on over shares (replicas), as often as right halves are complete with it.
struct TreeShare {
  const void *a, *b;
  std::int64_t examples;  // none: zeros
  int joins;
};
struct TreeSum {
  std::span<const TreeShare> shares;
  std::int64_t rows_per_example, lda, ldb;

  std::int64_t rows() const {
    std::int64_t examples = 0;
    for (const TreeShare& share : shares) examples += share.examples;
    return examples * rows_per_example;
  }
};

// Blocks of a product are cut at multiples of these: whole tiles of every variant.
inline constexpr std::int64_t kProductRowGrain = 24, kProductColumnGrain = 128;

// A block of a product over examples, of operands in the order of ProductKernels::tree_pack.
struct PackedTree {
  const void *a, *b;         // from the first row and the first column of the block on
  std::int64_t rows, first;  // of the contraction: as many are packed, and here the examples begin
  std::int64_t examples, rows_per_example;   // >= 1
  std::int64_t m, n;                         // of the block
  const PrefetchBlocks* prefetch = nullptr;  // m rows of it
};

// Products. Each output element is one chain c = fma(a, b, c) from c = +0 over the contraction
// index in ascending order (a multiplication and an addition where the variant has no FMA), so
// tiling and blocking are free and bits are not. A contraction of more than kContractionBlock
// products in one call is cut into chains of as many, which are joined by halving. "The chain goes
// on" then means that the joined sum is added.
struct ProductKernels {
  // The right operand b[k][n] (row stride ldb; transposed: b is stored [n][k] with row stride ldb)
  // in the order the micro kernel reads it. The packed form depends on k, n and values only.
  std::size_t (*packed_bytes)(std::int64_t k, std::int64_t n);
  void (*pack)(const void* b, std::int64_t k, std::int64_t n, std::int64_t ldb, bool transposed,
               void* packed);
  // y[m][n] = a[m][k] · b[k][n]; a's row stride is lda, y's is ldy. Any m, k, n >= 0.
  void (*matmul)(const void* a, std::int64_t m, std::int64_t k, std::int64_t lda,
                 const void* packed, std::int64_t n, void* y, std::int64_t ldy,
                 const Epilogue* epilogue);
  // The same bits, from a right operand that is too large to stay in a cache: read once for the
  // rows of all pieces, in blocks that are packed on the way.
  std::size_t (*matmul_wide_scratch_bytes)(std::int64_t k, std::int64_t columns);
  void (*matmul_wide)(const WideProduct& product);
  // y[m][n] = Σ_r a[r][m] · b[r][n], a chain over r = 0 … rows; with accumulate the chain goes on
  // from what y holds.
  void (*matmul_transposed)(const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
                            std::int64_t rows, std::int64_t m, std::int64_t n, void* y,
                            std::int64_t ldy, bool accumulate);
  // The same over examples by the fixed tree: a leaf is one chain over the rows of its examples.
  // Null: a leaf at a time does as well.
  std::size_t (*matmul_tree_scratch_bytes)(std::int64_t examples);
  void (*matmul_tree)(const PackedTree& block, void* y, std::int64_t ldy, void* scratch);
  // Its left or its right operand x[rows][columns] in the order in which it is read. Column c, a
  // multiple of kProductRowGrain on the left, of kProductColumnGrain on the right, begins after
  // c * rows elements.
  std::size_t (*tree_packed_bytes)(std::int64_t rows, std::int64_t columns, bool right);
  void (*tree_pack)(const void* x, std::int64_t ldx, std::int64_t rows, std::int64_t columns,
                    bool right, void* packed);
  // Adds a block of the sum, which begins at `row` and `column`, to y[m][n]. Null where matmul_tree
  // is.
  std::size_t (*matmul_tree_add_scratch_bytes)(const TreeSum& sum, std::int64_t m, std::int64_t n);
  void (*matmul_tree_add)(const TreeSum& sum, std::int64_t row, std::int64_t column, std::int64_t m,
                          std::int64_t n, void* y, std::int64_t ldy, void* scratch);

  // Convolution of one example, channels last; filter [kd][kh][kw][in of a group][out]; a chain
  // over (kh, kw, in) that goes on from kd to kd. The packed filter comes from conv2d_pack; where
  // there is one group it is that of pack(filter, patch_size, out_channels, out_channels, false).
  std::size_t (*conv2d_packed_bytes)(const WindowGeometry& g);
  void (*conv2d_pack)(const WindowGeometry& g, const void* filter, void* packed);
  std::size_t (*conv2d_scratch_bytes)(const WindowGeometry& g);
  void (*conv2d)(const WindowGeometry& g, const void* x, const void* packed_filter, void* y,
                 const Epilogue* epilogue, void* scratch);
  // dx[in] of one example: for each input pixel, over the taps (kd, kh, kw) in order, a chain over
  // the out channels that goes on over the taps. The filter is packed by its own function.
  std::size_t (*conv2d_input_grad_packed_bytes)(const WindowGeometry& g);
  void (*conv2d_input_grad_pack)(const WindowGeometry& g, const void* filter, void* packed);
  std::size_t (*conv2d_input_grad_scratch_bytes)(const WindowGeometry& g);
  void (*conv2d_input_grad)(const WindowGeometry& g, const void* dy, const void* packed, void* dx,
                            void* scratch);
  // A block of dfilter of one example: a chain over the output pixels in order; with accumulate it
  // goes on from what dfilter holds (the next example of a leaf).
  std::size_t (*conv2d_filter_grad_scratch_bytes)(const WindowGeometry& g,
                                                  const FilterBlock& block);
  void (*conv2d_filter_grad)(const WindowGeometry& g, const void* x, const void* dy,
                             const FilterBlock& block, void* dfilter, bool accumulate,
                             void* scratch);
  // The same over examples >= 1 of some images each, by the fixed tree: a leaf is one chain over
  // the pixels of its images. Null: a leaf at a time does as well.
  std::size_t (*conv2d_filter_tree_scratch_bytes)(const WindowGeometry& g, std::int64_t examples,
                                                  std::int64_t images_per_example,
                                                  const FilterBlock& block);
  void (*conv2d_filter_tree)(const WindowGeometry& g, const void* x, const void* dy,
                             std::int64_t examples, std::int64_t images_per_example,
                             const FilterBlock& block, void* dfilter, void* scratch);
};

// Pooling of one example, NHWC. Padding never wins a maximum and never counts in an average.
struct PoolKernels {
  // index[o] = position of the (first) maximum inside the window (row * window_width + column).
  void (*max_pool)(const WindowGeometry& g, const void* x, void* y, std::uint8_t* index);
  // dx is overwritten: the sum of the dy whose window chose the element.
  void (*max_pool_grad)(const WindowGeometry& g, const void* dy, const std::uint8_t* index,
                        void* dx);
  void (*avg_pool)(const WindowGeometry& g, const void* x, void* y);
  void (*avg_pool_grad)(const WindowGeometry& g, const void* dy, void* dx);
};

// Row-wise functions of classification, n classes per row.
struct SoftmaxKernels {
  void (*softmax)(const void* x, void* y, std::int64_t rows, std::int64_t n);
  void (*log_softmax)(const void* x, void* y, std::int64_t rows, std::int64_t n);
  // loss[r] = logsumexp(x[r]) - x[r][label[r]]; probabilities[r] = softmax(x[r]) for the gradient.
  void (*sparse_cross_entropy)(const void* x, const std::int64_t* labels, void* loss,
                               void* probabilities, std::int64_t rows, std::int64_t n);
};

// Counter-based random numbers (Philox 4x32-10). Element i of row r is a function of (key, stream,
// r, i) alone.
struct RandomKey {
  std::uint64_t seed;
  std::uint64_t stream;  // ordinal of the op mixed with the step counter
};
struct RandomKernels {
  // Rows first_row … first_row + rows of n elements each; float32/float64 by the table's dtype.
  // uniform: [0, 1) with 24 (53) random bits; normal: Box-Muller, mean 0, deviation 1.
  // truncated_normal: redrawn (a further counter) until |x| <= 2.
  void (*uniform)(RandomKey key, std::int64_t first_row, std::int64_t rows, std::int64_t n,
                  void* y);
  void (*normal)(RandomKey key, std::int64_t first_row, std::int64_t rows, std::int64_t n, void* y);
  void (*truncated_normal)(RandomKey key, std::int64_t first_row, std::int64_t rows, std::int64_t n,
                           void* y);
  // The elements first … first + n of one row, as `uniform` draws them.
  void (*uniform_part)(RandomKey key, std::int64_t row, std::int64_t first, std::int64_t n,
                       void* y);
};

// Uniform integers in [low, high).
using RandomIntegersKernel = void (*)(RandomKey key, std::int64_t first_row, std::int64_t rows,
                                      std::int64_t n, std::int64_t low, std::int64_t high, void* y);

// The sum mod 2^64 of a number for each element, a function of its index `first + i` and its bits
// (hash.cpp). So the hash of an array is the sum of those of its parts, in any order. All NaN of a
// dtype count as equal.
using HashKernel = std::uint64_t (*)(const void* x, std::int64_t n, std::int64_t first);

// Null where a function is not defined for the dtype.
struct KernelTable {
  std::uint64_t interface;  // what engine and kernels must have in common; always the first
  const char* isa;          // "x86-64-v3"
  bool fused;               // whether fma() rounds once
  UnaryKernel (*unary)(UnaryFn fn, DType dtype);
  BinaryKernel (*binary)(BinaryFn fn, DType dtype);
  SelectKernel (*select)(DType dtype);
  CastKernel (*cast)(DType from, DType to);
  RowReduceKernel (*row_reduce)(ReduceFn fn, DType dtype);
  ColumnReduceKernel (*column_reduce)(ReduceFn fn, DType dtype);
  ColumnFoldKernel (*column_fold)(ReduceFn fn, DType dtype);
  ArgReduceKernel (*arg_max)(DType dtype);
  ArgReduceKernel (*arg_min)(DType dtype);
  ScanKernel (*scan)(ScanFn fn, DType dtype);
  AffineScanKernel (*affine_scan)(DType dtype);
  const ProductKernels* (*product)(DType dtype);  // floats; int32 and int64: the matmul part only
  const PoolKernels* (*pool)(DType dtype);
  const SoftmaxKernels* (*softmax)(DType dtype);
  const RandomKernels* (*random)(DType dtype);
  RandomIntegersKernel (*random_integers)(DType dtype);
  HashKernel (*hash)(DType dtype);  // all dtypes
};

// A table whose functions are there: TypeError where one is not defined for the dtype.
class Kernels {
 public:
  explicit Kernels(const KernelTable& table) : table_(table) {}

  const KernelTable& table() const { return table_; }
  UnaryKernel unary(UnaryFn fn, DType dtype) const {
    return there("elementwise", dtype, table_.unary(fn, dtype));
  }
  BinaryKernel binary(BinaryFn fn, DType dtype) const {
    return there("elementwise", dtype, table_.binary(fn, dtype));
  }
  SelectKernel select(DType dtype) const { return there("select", dtype, table_.select(dtype)); }
  CastKernel cast(DType from, DType to) const { return there("cast", from, table_.cast(from, to)); }
  RowReduceKernel row_reduce(ReduceFn fn, DType dtype) const {
    return there("reduction", dtype, table_.row_reduce(fn, dtype));
  }
  ColumnReduceKernel column_reduce(ReduceFn fn, DType dtype) const {
    return there("reduction", dtype, table_.column_reduce(fn, dtype));
  }
  ColumnFoldKernel column_fold(ReduceFn fn, DType dtype) const {
    return there("reduction", dtype, table_.column_fold(fn, dtype));
  }
  ArgReduceKernel arg_max(DType dtype) const {
    return there("arg_max", dtype, table_.arg_max(dtype));
  }
  ArgReduceKernel arg_min(DType dtype) const {
    return there("arg_min", dtype, table_.arg_min(dtype));
  }
  ScanKernel scan(ScanFn fn, DType dtype) const {
    return there("scan", dtype, table_.scan(fn, dtype));
  }
  AffineScanKernel affine_scan(DType dtype) const {
    return there("scan", dtype, table_.affine_scan(dtype));
  }
  const ProductKernels& product(DType dtype) const {
    return *there("product", dtype, table_.product(dtype));
  }
  const PoolKernels& pool(DType dtype) const { return *there("pool", dtype, table_.pool(dtype)); }
  const SoftmaxKernels& softmax(DType dtype) const {
    return *there("softmax", dtype, table_.softmax(dtype));
  }
  const RandomKernels& random(DType dtype) const {
    return *there("random", dtype, table_.random(dtype));
  }
  RandomIntegersKernel random_integers(DType dtype) const {
    return there("random_integers", dtype, table_.random_integers(dtype));
  }
  HashKernel hash(DType dtype) const { return there("hash", dtype, table_.hash(dtype)); }

 private:
  template <class Pointer>
  static Pointer there(const char* family, DType dtype, Pointer kernel) {
    if (kernel == nullptr) [[unlikely]]
      refuse(family, dtype);
    return kernel;
  }
  [[noreturn]] static void refuse(const char* family, DType dtype);

  const KernelTable& table_;
};

// Those in use: the best the machine runs, or those that SAMEGRAD_ISA names; loaded once.
// RuntimeError if the named variant is unknown or does not run here.
const Kernels& kernels();

}  // namespace samegrad
