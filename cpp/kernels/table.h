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
#include <tuple>
#include <type_traits>

#include "base/dtype.h"
#include "base/function_enums.h"
#include "base/prefetch.h"
#include "kernels/geometry.h"

namespace samegrad {

enum class ReduceFn : std::uint8_t { kSum, kProd, kMax, kMin, kAny, kAll };
enum class ScanFn : std::uint8_t { kSum, kProd };
enum class Activation : std::uint8_t { kNone, kRelu };

// Lines of n elements of x[outer][n][stride], from the first to the last or the other way round:
// the first `width` of each `stride`.
struct ScanLines {
  std::int64_t outer, n, width, stride;
  bool exclusive, reverse;
};
inline constexpr int kScanRows = 8;  // the scratch of a scan holds so many of `width` elements

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
struct GroupedGemm {
  std::span<const RowPiece> pieces;
  std::int64_t k, n;
  const void* b;
  bool transposed;
  std::int64_t first_column, columns;  // the first one is a multiple of kWidestPanel
  const Epilogue* epilogue;            // or null; the bias has all n columns
  void* scratch;                       // matmul_grouped_scratch_bytes(k, columns), on a cache line
  bool fetches = false;                // the next block of b beside the products of the last one
};
// Columns of a product that are cut at multiples of this fill the panels of every variant.
inline constexpr std::int64_t kWidestPanel = 128;
// Rows that are cut at multiples of this are whole tiles of every variant.
inline constexpr std::int64_t kWholeTiles = 24;

// Products by the tree whose sums are added one after the other, as those of the iterations of a
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
  // Computes the bits of matmul() from a right operand that is too large to stay in a cache: read
  // once for the rows of all pieces, in blocks that are packed on the way.
  std::size_t (*matmul_grouped_scratch_bytes)(std::int64_t k, std::int64_t columns);
  void (*matmul_grouped)(const GroupedGemm& product);
  // y[m][n] = Σ_r a[r][m] · b[r][n], a chain over r = 0 … rows; with accumulate the chain goes on
  // from what y holds. A workspace of so many bytes gets copies of columns of a, whose lines fall
  // on a few sets of the caches where lda is a power of two; null: a is read in place.
  std::size_t (*transposed_workspace_bytes)(std::int64_t rows, std::int64_t m, std::int64_t n);
  void (*matmul_transposed)(const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
                            std::int64_t rows, std::int64_t m, std::int64_t n, void* y,
                            std::int64_t ldy, bool accumulate, void* workspace);
  // Sums what matmul_transposed() does over examples by the fixed tree: a leaf is one chain over
  // the rows of its examples. Null: a leaf at a time does as well.
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
  // The pack functions pack columns [begin, end) of each group, from multiples of
  // kProductColumnGrain on; single channels are packed with the first of them.
  void (*conv2d_pack)(const WindowGeometry& g, const void* filter, std::int64_t begin,
                      std::int64_t end, void* packed);
  std::size_t (*conv2d_scratch_bytes)(const WindowGeometry& g);
  void (*conv2d)(const WindowGeometry& g, const void* x, const void* packed_filter, void* y,
                 const Epilogue* epilogue, void* scratch);
  // dx[in] of one example: for each input pixel, over the taps (kd, kh, kw) in order, a chain over
  // the out channels that goes on over the taps. The filter is packed by its own function.
  std::size_t (*conv2d_input_grad_packed_bytes)(const WindowGeometry& g);
  void (*conv2d_input_grad_pack)(const WindowGeometry& g, const void* filter, std::int64_t begin,
                                 std::int64_t end, void* packed);
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
  // Sums what conv2d_filter_grad() does over examples >= 1 of some images each, by the fixed tree:
  // a leaf is one chain over the pixels of its images. Null: a leaf at a time does as well.
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
  // The first `seen` results of rows whose other elements are the hidden score; these are not read,
  // and may be overwritten in y.
  void (*softmax_of_seen)(const void* x, void* y, std::int64_t rows, std::int64_t n,
                          std::int64_t seen, const void* hidden_score);
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

// The types of the kernels that are single functions.
#define SAMEGRAD_KERNEL(name, Kernel, title, key, function) \
  using Kernel = std::add_pointer_t<function>;
#define SAMEGRAD_KERNEL_GROUP(name, Group, title, key)
#include "kernels/kernels.def"

[[noreturn]] void refuse_kernel(const char* title, DType dtype);

// One kernel of a table by its key, the last of which is a dtype.
template <class Found>
struct KernelFamily;
template <class Kernel, class... Key>
struct KernelFamily<Kernel*(Key...)> {
  const char* title;
  // Null where the kernel is not defined for the key.
  Kernel* (*find)(Key... key);

  // TypeError where it is not defined.
  Kernel& operator()(Key... key) const {
    Kernel* const found = find(key...);
    if (found == nullptr) [[unlikely]]
      refuse_kernel(title, std::get<sizeof...(Key) - 1>(std::tuple(key...)));
    return *found;
  }
};

struct KernelTable {
  std::uint64_t interface;  // what engine and kernels must have in common; always the first
  const char* isa;          // "x86-64-v3"
  bool fused;               // whether fma() rounds once
#define SAMEGRAD_KERNEL(name, Kernel, title, key, function) KernelFamily<Kernel key> name;
#include "kernels/kernels.def"
};

// The kernels in use: the best the machine runs, or those that SAMEGRAD_ISA names; loaded once.
// RuntimeError if the named variant is unknown or does not run here.
const KernelTable& kernels();

}  // namespace samegrad
