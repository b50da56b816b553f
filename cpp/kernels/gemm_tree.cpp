// Products whose contraction is the tree over examples: its lower levels stay in registers.
//
// A tile of the result takes a piece of at most kMaxExamples examples at a time: the chain of a
// leaf, and below it the halves that wait for it, are registers. Sums of pieces wait on a stack
// that stays in the first cache.
#include <algorithm>
#include <array>
#include <utility>

#include "base/rounding.h"
#include "kernels/gemm_functions.h"
#include "kernels/gemm_pack.h"
#include "kernels/gemm_tree_tile.h"
#include "kernels/window_taps.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// Entry i sums i examples.
template <class T, bool kSingle, int... kPlace>
constexpr auto piece_functions(std::integer_sequence<int, kPlace...>) {
  return std::array<PieceFn<T>, sizeof...(kPlace)>{&run_piece<T, kPlace, kSingle>...};
}
template <class T, bool kSingle>
constexpr auto kPieceFunctions =
    piece_functions<T, kSingle>(std::make_integer_sequence<int, kMaxExamples + 1>());

// A subtree of few examples, and how many right halves are complete with it.
template <class T>
struct TreePiece {
  PieceFn<T> run;
  int joins;
};

// At most: pieces, and sums of them that wait on the stack.
struct PieceCounts {
  std::int64_t pieces, levels;
};

// A range of more than kMaxExamples is halved, so no piece is smaller than half of that.
PieceCounts most_pieces(std::int64_t examples) {
  return {2 * examples / kMaxExamples + 1, kPieceTree.levels(examples)};
}

PieceCounts most_pieces(const TreeSum& sum) {
  PieceCounts most{0, 1};
  for (const TreeShare& share : sum.shares) {
    const PieceCounts of = most_pieces(share.examples);
    most = {most.pieces + of.pieces, std::max(most.levels, of.levels)};
  }
  most.levels += 1 + kReplicaTree.levels(std::int64_t(sum.shares.size()));
  return most;
}

// The temporary memory of a product.
template <class T>
struct TreeStack {
  T* sums;  // of pieces
  TreePiece<T>* pieces;

  static std::size_t sum_bytes(const PieceCounts& most) {
    return std::size_t(most.levels * kTileElements<T>) * sizeof(T);
  }
  static std::size_t bytes(const PieceCounts& most) {
    return sum_bytes(most) + std::size_t(most.pieces) * sizeof(TreePiece<T>);
  }
  TreeStack(void* memory, const PieceCounts& most)
      : sums(static_cast<T*>(memory)),
        pieces(reinterpret_cast<TreePiece<T>*>(static_cast<std::byte*>(memory) + sum_bytes(most))) {
  }
};

// Both operands in the order in which tiles read them, and the stack.
template <class T>
struct TreeMemory {
  static std::size_t a_bytes(std::int64_t rows, std::int64_t m) {
    return aligned(std::size_t(rows * round_up(m, kTreeRows)));
  }
  static std::size_t b_bytes(std::int64_t rows, std::int64_t n) {
    return aligned(std::size_t(rows * round_up(n, kTreeColumns<T>)));
  }
  static std::size_t bytes(const PieceCounts& most, std::int64_t rows, std::int64_t m,
                           std::int64_t n) {
    return a_bytes(rows, m) + b_bytes(rows, n) + TreeStack<T>::bytes(most);
  }
  TreeMemory(void* memory, const PieceCounts& most, std::int64_t rows, std::int64_t m,
             std::int64_t n)
      : b(static_cast<T*>(memory)),
        a(reinterpret_cast<T*>(static_cast<std::byte*>(memory) + b_bytes(rows, n))),
        stack(reinterpret_cast<std::byte*>(a) + a_bytes(rows, m), most) {}

  T* b;  // panel after panel
  T* a;  // group after group of kTreeRows rows of the result
  TreeStack<T> stack;

 private:
  static std::size_t aligned(std::size_t elements) { return round_up(elements * sizeof(T), 64u); }
};

// The columns of rows, row_of(r) each, in groups of kColumns, each with all rows. Some rows at a
// time, so that lines of the cache are written whole: those of all groups may fall on a few of its
// sets.
template <std::int64_t kColumns, class T, class RowOf>
void pack_groups(const RowOf& row_of, std::int64_t rows, std::int64_t columns, T* to) {
  constexpr std::int64_t kRows = std::max<std::int64_t>(1, 128 / (kColumns * sizeof(T)));
  for (std::int64_t first = 0; first < rows; first += kRows) {
    const std::int64_t end = std::min(first + kRows, rows);
    std::int64_t c = 0;
    for (; c + kColumns <= columns; c += kColumns) {
      for (std::int64_t r = first; r < end; ++r) {
        std::copy_n(row_of(r) + c, kColumns, to + c * rows + r * kColumns);
      }
    }
    for (std::int64_t r = first; c < columns && r < end; ++r) {
      T* at = to + c * rows + r * kColumns;
      std::copy_n(row_of(r) + c, columns - c, at);
      std::fill(at + columns - c, at + kColumns, T(0));
    }
  }
}

// Results are written down a column of tiles, so that the processor does not foresee their lines.
constexpr std::int64_t kAhead = 4 * kTreeRows;

template <class T>
void prefetch_rows(const T* y, std::int64_t ldy, std::int64_t row, std::int64_t m) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (const std::int64_t end = std::min(row + kTreeRows, m); row < end; ++row) {
    for (std::int64_t c = 0; c < kTreeColumns<T>; c += kLine) {
      __builtin_prefetch(y + row * ldy + c, 1);
    }
  }
}

template <class T>
std::int64_t list_pieces(std::int64_t examples, bool single, TreePiece<T>* pieces) {
  std::int64_t count = 0;
  for_each_leaf(kPieceTree, {0, examples}, [&](const TreeStep& step) {
    const auto of = std::size_t(step.range.size());
    pieces[count++] = {single ? kPieceFunctions<T, true>[of] : kPieceFunctions<T, false>[of],
                       step.joins};
  });
  return count;
}

// A product whose operands are packed.
template <class T>
struct PackedTreeGemm {
  const T *a, *b;
  const TreeStack<T>& stack;
  std::int64_t pieces;
  std::int64_t rows_per_example, rows;  // of the contraction; as many are between groups
  std::int64_t m, n;
  bool adds = false;                         // to the result, which is at the bottom of the stack
  const PrefetchBlocks* prefetch = nullptr;  // as PackedTree has it
};

// Fetches what is needed soon of the place of a tile, some of its rows with each piece.
template <class T>
class PrefetchOfTile {
 public:
  SAMEGRAD_INLINE PrefetchOfTile(const PackedTreeGemm<T>& p, std::int64_t row, std::int64_t column)
      : prefetch_(p.prefetch) {
    if (!prefetch_) return;
    rows_ = std::min<std::int64_t>(p.m - row, kTreeRows);
    offset_ = row * prefetch_->stride + column * std::int64_t(sizeof(T));
  }

  // Prefetches the next `some` rows.
  SAMEGRAD_INLINE void fetch(std::int64_t some) {
    for (; some > 0 && array_ < prefetch_->count; --some) {
      const std::byte* at = prefetch_->data[array_] + offset_ + row_ * prefetch_->stride;
      for (std::size_t line = 0; line < kTreeColumns<T> * sizeof(T); line += 64) {
        __builtin_prefetch(at + line, 0, 2);
      }
      if (++row_ < rows_) continue;
      row_ = 0;
      ++array_;
    }
  }

 private:
  const PrefetchBlocks* prefetch_;
  std::int64_t rows_ = 0, offset_ = 0;
  std::int64_t array_ = 0, row_ = 0;  // the next one
};

template <class T>
void load_part(const T* y, std::int64_t ldy, std::int64_t rows, std::int64_t columns, T* tile) {
  const std::int64_t wide = std::min(columns, kTreeColumns<T>);
  for (std::int64_t r = 0; r < kTreeRows; ++r, tile += kTreeColumns<T>) {
    const std::int64_t filled = r < rows ? wide : 0;
    std::copy_n(y + (filled ? r * ldy : 0), filled, tile);
    std::fill(tile + filled, tile + kTreeColumns<T>, T(0));
  }
}

template <class T>
void multiply_packed(const PackedTreeGemm<T>& p, T* y, std::int64_t ldy) {
  // With each piece, so that a tile's are fetched with the last one; none where the pieces are too
  // few for memory to bring so much meanwhile: products would wait for it, and what reads it
  // fetches it as well.
  constexpr std::int64_t kMaxFetched = 2;
  const std::int64_t rows = p.prefetch ? divide_up(p.prefetch->count * kTreeRows, p.pieces) : 0;
  const std::int64_t fetched = rows > kMaxFetched ? 0 : rows;
  for (std::int64_t column = 0; column < p.n; column += kTreeColumns<T>) {
    for (std::int64_t row = 0; row < p.m; row += kTreeRows) {
      TreeCursor<T> at{p.a + row * p.rows, p.b + column * p.rows};
      T* top = p.stack.sums;
      PrefetchOfTile<T> prefetch(p, row, column);
      prefetch_rows(y + column, ldy, row + kAhead, p.m);
      if (p.adds) {
        load_part(y + row * ldy + column, ldy, p.m - row, p.n - column, top);
        top += kTileElements<T>;
      }
      for (std::int64_t i = 0; i < p.pieces; ++i) {
        const TreePiece<T>& piece = p.stack.pieces[i];
        prefetch.fetch(fetched);
        T* result = i + 1 < p.pieces ? nullptr : y + row * ldy + column;
        piece.run(at, p.rows_per_example, {top, piece.joins, result, ldy, p.m - row, p.n - column});
        top += (1 - piece.joins) * kTileElements<T>;
      }
    }
  }
}

// Pixels of all images that a tap of a filter sees, on the input or on the output.
struct SeenPixels {
  TapRange planes, rows, columns;
  bool operator==(const SeenPixels&) const = default;
  std::int64_t count() const { return planes.count * rows.count * columns.count; }
};

// Offset of the first pixel, and the step to the next one along each axis; in pixels.
struct PixelWalk {
  std::int64_t image, first, plane, row, column;
};

template <class T>
void list_pixels(const T* from, std::int64_t channels, const PixelWalk& walk,
                 const SeenPixels& seen, std::int64_t images, const T** to) {
  for (std::int64_t i = 0; i < images; ++i) {
    for (std::int64_t z = 0; z < seen.planes.count; ++z) {
      for (std::int64_t y = 0; y < seen.rows.count; ++y) {
        const std::int64_t first = i * walk.image + walk.first + z * walk.plane + y * walk.row;
        for (std::int64_t x = 0; x < seen.columns.count; ++x) {
          *to++ = from + (first + x * walk.column) * channels;
        }
      }
    }
  }
}

// The gradient of a filter, tap by tap: a tap is a product of the pixels that it sees.
template <class T>
class FilterTree {
 public:
  FilterTree(const WindowGeometry& g, std::int64_t examples, std::int64_t images_per_example,
             const FilterBlock& block, void* scratch)
      : g_(g),
        images_(images_per_example),
        pixels_(examples * images_per_example * g.out_pixels()),
        block_(block),
        x_(static_cast<const T**>(scratch)),
        dy_(x_ + pixels_),
        memory_(reinterpret_cast<std::byte*>(scratch) + list_bytes(2 * pixels_),
                most_pieces(examples), pixels_, most_rows(g, block), most_columns(g, block)),
        examples_(examples) {}

  static std::size_t bytes(const WindowGeometry& g, std::int64_t examples,
                           std::int64_t images_per_example, const FilterBlock& block) {
    const std::int64_t pixels = examples * images_per_example * g.out_pixels();
    return list_bytes(2 * pixels) + TreeMemory<T>::bytes(most_pieces(examples), pixels,
                                                         most_rows(g, block),
                                                         most_columns(g, block));
  }

  void run(const T* x, const T* dy, T* dfilter) {
    const std::int64_t in = g_.group_in(), out = g_.group_out();
    pieces_ = list_pieces(examples_, images_ * g_.out_pixels() == 1, memory_.stack.pieces);
    for (std::int64_t done = 0; done < block_.columns;) {
      const std::int64_t column = block_.column + done, group = column / out;
      const std::int64_t columns = std::min(block_.columns - done, (group + 1) * out - column);
      run_group(x + group * in, dy + column, columns, dfilter + done);
      done += columns;
    }
  }

 private:
  static std::int64_t most_rows(const WindowGeometry& g, const FilterBlock& block) {
    return std::min(g.group_in(), block.rows);
  }
  static std::int64_t most_columns(const WindowGeometry& g, const FilterBlock& block) {
    return std::min(g.group_out(), block.columns);
  }
  static std::size_t list_bytes(std::int64_t count) {
    return round_up(static_cast<std::size_t>(count) * sizeof(T*), 64u);
  }

  void run_group(const T* x, const T* dy, std::int64_t columns, T* result) {
    const std::int64_t channels = g_.group_in(), end = block_.row + block_.rows;
    SeenPixels packed;
    for (std::int64_t row = block_.row; row < end;) {
      const std::int64_t tap = row / channels, next = std::min(end, (tap + 1) * channels);
      const SeenPixels seen = seen_by(tap);
      const std::int64_t per_example = images_ * seen.count(), rows = examples_ * per_example;
      T* to = result + (row - block_.row) * block_.stride;
      if (rows == 0) {
        for (; row < next; ++row, to += block_.stride) std::fill_n(to, columns, T(0));
        continue;
      }
      if (seen != packed) {
        list_pixels(dy, g_.out_channels, of_results(seen), seen, examples_ * images_, dy_);
        pack_groups<kTreeColumns<T>>([&](std::int64_t r) { return dy_[r]; }, rows, columns,
                                     memory_.b);
        packed = seen;
      }
      list_pixels(x, g_.in_channels, of_images(seen, tap), seen, examples_ * images_, x_);
      const std::int64_t first = row - tap * channels;
      pack_groups<kTreeRows>([&](std::int64_t r) { return x_[r] + first; }, rows, next - row,
                             memory_.a);
      multiply_packed<T>(
          {memory_.a, memory_.b, memory_.stack, pieces_, per_example, rows, next - row, columns},
          to, block_.stride);
      row = next;
    }
  }

  SeenPixels seen_by(std::int64_t tap) const {
    const std::int64_t row = tap / g_.window_width;
    return {outputs_of_tap(depth_axis(g_), row / g_.window_height),
            outputs_of_tap(vertical_axis(g_), row % g_.window_height),
            outputs_of_tap(horizontal_axis(g_), tap % g_.window_width)};
  }
  PixelWalk of_results(const SeenPixels& seen) const {
    const std::int64_t plane = g_.out_height * g_.out_width;
    return {g_.out_pixels(),
            seen.planes.first * plane + seen.rows.first * g_.out_width + seen.columns.first, plane,
            g_.out_width, 1};
  }
  PixelWalk of_images(const SeenPixels& seen, std::int64_t tap) const {
    const std::int64_t plane = g_.in_height * g_.in_width, row = tap / g_.window_width;
    const std::int64_t z = depth_axis(g_).input_of(seen.planes.first, row / g_.window_height);
    const std::int64_t y = vertical_axis(g_).input_of(seen.rows.first, row % g_.window_height);
    const std::int64_t x = horizontal_axis(g_).input_of(seen.columns.first, tap % g_.window_width);
    return {g_.in_depth * plane, z * plane + y * g_.in_width + x, g_.stride_depth * plane,
            g_.stride_height * g_.in_width, g_.stride_width};
  }

  const WindowGeometry& g_;
  std::int64_t images_, pixels_;
  const FilterBlock& block_;
  const T** x_;
  const T** dy_;
  TreeMemory<T> memory_;
  std::int64_t examples_, pieces_ = 0;
};

}  // namespace

template <class T>
std::size_t tree_packed_bytes(std::int64_t rows, std::int64_t columns, bool right) {
  return right ? TreeMemory<T>::b_bytes(rows, columns) : TreeMemory<T>::a_bytes(rows, columns);
}

template <class T>
void tree_pack(const void* x, std::int64_t ldx, std::int64_t rows, std::int64_t columns, bool right,
               void* packed) {
  static_assert(kProductRowGrain % kTreeRows == 0 && kProductColumnGrain % kTreeColumns<T> == 0);
  const auto row_of = [=](std::int64_t r) { return static_cast<const T*>(x) + r * ldx; };
  auto* to = static_cast<T*>(packed);
  if (right) {
    pack_groups<kTreeColumns<T>>(row_of, rows, columns, to);
  } else {
    pack_groups<kTreeRows>(row_of, rows, columns, to);
  }
}

template <class T>
std::size_t matmul_tree_scratch_bytes(std::int64_t examples) {
  return TreeStack<T>::bytes(most_pieces(examples));
}

template <class T>
void matmul_tree(const PackedTree& p, void* y, std::int64_t ldy, void* scratch) {
  const TreeStack<T> stack(scratch, most_pieces(p.examples));
  const std::int64_t pieces = list_pieces(p.examples, p.rows_per_example == 1, stack.pieces);
  multiply_packed<T>({static_cast<const T*>(p.a) + p.first * kTreeRows,
                      static_cast<const T*>(p.b) + p.first * kTreeColumns<T>, stack, pieces,
                      p.rows_per_example, p.rows, p.m, p.n, false, p.prefetch},
                     static_cast<T*>(y), ldy);
}

template <class T>
std::size_t matmul_tree_add_scratch_bytes(const TreeSum& s, std::int64_t m, std::int64_t n) {
  const std::int64_t rows = s.rows();
  return TreeMemory<T>::bytes(most_pieces(s), rows, m, n) + 2 * std::size_t(rows) * sizeof(T*);
}

template <class T>
void matmul_tree_add(const TreeSum& s, std::int64_t row, std::int64_t column, std::int64_t m,
                     std::int64_t n, void* y, std::int64_t ldy, void* scratch) {
  const std::int64_t rows = s.rows();
  auto** a = static_cast<const T**>(scratch);
  auto** b = a + rows;
  const TreeMemory<T> memory(static_cast<void*>(b + rows), most_pieces(s), rows, m, n);
  std::int64_t pieces = 0, next = 0;
  for (const TreeShare& share : s.shares) {
    for (std::int64_t r = 0; r < share.examples * s.rows_per_example; ++r, ++next) {
      a[next] = static_cast<const T*>(share.a) + r * s.lda + row;
      b[next] = static_cast<const T*>(share.b) + r * s.ldb + column;
    }
    pieces += list_pieces(share.examples, s.rows_per_example == 1, memory.stack.pieces + pieces);
    memory.stack.pieces[pieces - 1].joins += share.joins;
  }
  pack_groups<kTreeRows>([=](std::int64_t r) { return a[r]; }, rows, m, memory.a);
  pack_groups<kTreeColumns<T>>([=](std::int64_t r) { return b[r]; }, rows, n, memory.b);
  multiply_packed<T>(
      {memory.a, memory.b, memory.stack, pieces, s.rows_per_example, rows, m, n, true},
      static_cast<T*>(y), ldy);
}

template <class T>
std::size_t conv2d_filter_tree_scratch_bytes(const WindowGeometry& g, std::int64_t examples,
                                             std::int64_t images_per_example,
                                             const FilterBlock& block) {
  return FilterTree<T>::bytes(g, examples, images_per_example, block);
}

template <class T>
void conv2d_filter_tree(const WindowGeometry& g, const void* x, const void* dy,
                        std::int64_t examples, std::int64_t images_per_example,
                        const FilterBlock& block, void* dfilter, void* scratch) {
  FilterTree<T>(g, examples, images_per_example, block, scratch)
      .run(static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dfilter));
}

#define SAMEGRAD_FLOAT(T)                                                                         \
  template std::size_t tree_packed_bytes<T>(std::int64_t, std::int64_t, bool);                    \
  template void tree_pack<T>(const void*, std::int64_t, std::int64_t, std::int64_t, bool, void*); \
  template std::size_t matmul_tree_scratch_bytes<T>(std::int64_t);                                \
  template void matmul_tree<T>(const PackedTree&, void*, std::int64_t, void*);                    \
  template std::size_t matmul_tree_add_scratch_bytes<T>(const TreeSum&, std::int64_t,             \
                                                        std::int64_t);                            \
  template void matmul_tree_add<T>(const TreeSum&, std::int64_t, std::int64_t, std::int64_t,      \
                                   std::int64_t, void*, std::int64_t, void*);                     \
  template std::size_t conv2d_filter_tree_scratch_bytes<T>(const WindowGeometry&, std::int64_t,   \
                                                           std::int64_t, const FilterBlock&);     \
  template void conv2d_filter_tree<T>(const WindowGeometry&, const void*, const void*,            \
                                      std::int64_t, std::int64_t, const FilterBlock&, void*,      \
                                      void*);
#include "kernels/instantiate.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
