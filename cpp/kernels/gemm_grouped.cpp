// Products whose right operand stays in no cache: it is read once, for the rows of all pieces.
#include <algorithm>

#include "base/rounding.h"
#include "kernels/gemm_functions.h"
#include "kernels/gemm_k_blocks.h"
#include "kernels/gemm_pack.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// A block of B: 768 KB, which stay in a second cache of 2 MB (and mostly in one of 1 MB) while all
// rows pass by. The deeper it is, the fewer times a sum is stored and loaded again.
constexpr std::int64_t kBlockDepth = 384;
template <class T>
constexpr std::int64_t kBlockColumns = 2048 / sizeof(T);
template <class T>
constexpr std::int64_t kLineElements = 64 / sizeof(T);
// Rows whose partial sums are kept at a time where a contraction is more than a chain.
constexpr std::int64_t kLongRows = 512;

// The size of blocks of nearly equal size, a multiple of `unit`, at most `most`.
constexpr std::int64_t even_block(std::int64_t n, std::int64_t most, std::int64_t unit) {
  const std::int64_t blocks = std::max<std::int64_t>(1, divide_up(n, most));
  return round_up(divide_up(n, blocks), unit);
}

struct UnitRange {
  std::int64_t first, count;
};

// The scratch memory: a packed block of B, a packed block of A, and the levels of partial sums.
template <class T>
struct GroupedBlocks {
  std::int64_t depth, columns;
  int levels;  // besides the result

  GroupedBlocks(std::int64_t k, std::int64_t all_columns)
      : depth(even_block(std::min(k, kContractionBlock), kBlockDepth, Vec<T>::kLanes)),
        columns(even_block(all_columns, kBlockColumns<T>, kPanelColumns<T>)),
        levels(kContractionTree.levels(k) - 1) {}
  // A step of whole pages would put all rows of a tile into the same few cache lines.
  std::int64_t a_step() const { return depth + kLineElements<T>; }
  std::int64_t a_start() const { return depth * columns; }
  std::int64_t levels_start() const { return a_start() + kMaxRows * a_step(); }
  std::int64_t size() const { return levels_start() + levels * kLongRows * columns; }
};

// Some columns of some rows of the result.
template <class T>
class GroupedBlock {
 public:
  GroupedBlock(const GroupedGemm& wide, const GroupedBlocks<T>& blocks, UnitRange rows,
               UnitRange columns, bool last_rows)
      : wide_(wide), blocks_(blocks), rows_(rows), columns_(columns), last_rows_(last_rows) {}

  void run() const {
    if (wide_.k <= kContractionBlock) return multiply_chain(0, wide_.k, 0, epilogue());
    walk_tree(
        kContractionTree, TreeRange{0, wide_.k},
        [&](TreeRange of, int level) { multiply_chain(of.begin, of.size(), level, {}); },
        [&](int level) { add(level); });
    const Epilogue last = epilogue();
    for_rows([&](std::int64_t i, const T*, T* y) {
      finish_row(at_level(0, i, y), columns_.count, static_cast<const T*>(last.bias),
                 last.activation);
    });
  }

 private:
  // visit(number, row of A, row of the result)
  template <class Visit>
  void for_rows(const Visit& visit) const {
    std::int64_t skip = rows_.first, i = 0;
    for (const RowPiece& piece : wide_.pieces) {
      const auto* a = static_cast<const T*>(piece.a);
      auto* y = static_cast<T*>(piece.y);
      for (std::int64_t r = skip; r < piece.rows && i < rows_.count; ++r, ++i) {
        visit(i, a + r * wide_.k, y + r * wide_.n);
      }
      skip = std::max<std::int64_t>(0, skip - piece.rows);
    }
  }

  void add(int level) const {
    for_rows([&](std::int64_t i, const T*, T* y) {
      T* const to = at_level(level, i, y);
      const T* const from = at_level(level + 1, i, y);
      add_rows(&to, &from, 1, columns_.count);
    });
  }

  T* at_level(int level, std::int64_t i, T* y) const {
    if (level == 0) return y + columns_.first;
    return scratch() + blocks_.levels_start() + ((level - 1) * kLongRows + i) * columns_.count;
  }
  T* scratch() const { return static_cast<T*>(wide_.scratch); }

  Epilogue epilogue() const {
    Epilogue all = wide_.epilogue != nullptr ? *wide_.epilogue : Epilogue{};
    if (all.bias != nullptr) all.bias = static_cast<const T*>(all.bias) + columns_.first;
    return all;
  }

  // A chain in blocks, which goes on from what the last one stored.
  void multiply_chain(std::int64_t first, std::int64_t count, int level,
                      const Epilogue& epilogue) const {
    std::int64_t done = 0;
    do {
      const std::int64_t depth = std::min(blocks_.depth, count - done);
      const bool last = done + depth == count;
      pack_block(first + done, depth);
      PrefetchRows prefetch = block_from(first + done + depth);
      multiply_block({first + done, depth}, level, done > 0, last ? epilogue : Epilogue{},
                     &prefetch);
      done += depth;
    } while (done < count);
  }

  void pack_block(std::int64_t first, std::int64_t depth) const {
    const auto* b = static_cast<const T*>(wide_.b);
    const std::int64_t ldb = wide_.transposed ? wide_.k : wide_.n;
    b += wide_.transposed ? columns_.first * ldb + first : first * ldb + columns_.first;
    pack_rows(b, depth, columns_.count, ldb, wide_.transposed, 0, depth, scratch());
  }

  // The block of B that begins at this row of it, or where its rows have ended the first one for
  // the next rows of A, or of the next columns; as they are in memory.
  PrefetchRows block_from(std::int64_t first) const {
    std::int64_t column = columns_.first, columns = columns_.count;
    if (first == wide_.k) {
      first = 0;
      if (last_rows_) {
        column += columns;
        columns = std::min(columns, wide_.first_column + wide_.columns - column);
      }
    }
    const std::int64_t depth = std::min(blocks_.depth, wide_.k - first);
    const auto* b = static_cast<const T*>(wide_.b);
    constexpr auto kBytes = std::int64_t(sizeof(T));
    if (wide_.transposed) {
      return {b + column * wide_.k + first, depth * kBytes, wide_.k * kBytes, columns};
    }
    return {b + first * wide_.n + column, columns * kBytes, wide_.n * kBytes, depth};
  }

  std::int64_t tiles() const {
    return divide_up(rows_.count, kTileRows) * divide_up(columns_.count, kPanelColumns<T>);
  }

  // Rows of A that are far apart are copied, for the sake of all panels that they pass.
  void multiply_block(UnitRange depth, int level, bool accumulate, const Epilogue& epilogue,
                      PrefetchRows* prefetch) const {
    Gemm<T> product;
    product.walk.length = depth.count;
    product.b = packed_panels<T>(scratch(), depth.count, columns_.count);
    product.accumulate = accumulate;
    product.bias = static_cast<const T*>(epilogue.bias);
    product.activation = epilogue.activation;
    product.prefetch = wide_.fetches && prefetch->lines() > 0 ? prefetch : nullptr;
    product.prefetch_lines = divide_up(prefetch->lines(), tiles());
    RowBatch<T> group(product);
    const std::int64_t group_rows = even_block(rows_.count, kMaxRows, kTileRows);
    for_rows([&](std::int64_t i, const T* a, T* y) {
      const std::int64_t place = i % group_rows;
      if (place == 0) group.flush();
      T* copy = scratch() + blocks_.a_start() + place * blocks_.a_step();
      std::copy_n(a + depth.first, depth.count, copy);
      group.add(copy, at_level(level, i, y));
    });
    group.flush();
  }

  const GroupedGemm& wide_;
  const GroupedBlocks<T>& blocks_;
  UnitRange rows_, columns_;
  bool last_rows_;  // with these columns
};

}  // namespace

template <class T>
std::size_t matmul_grouped_scratch_bytes(std::int64_t k, std::int64_t columns) {
  return static_cast<std::size_t>(GroupedBlocks<T>(k, columns).size()) * sizeof(T);
}

template <class T>
void matmul_grouped(const GroupedGemm& wide) {
  const GroupedBlocks<T> blocks(wide.k, wide.columns);
  std::int64_t rows = 0;
  for (const RowPiece& piece : wide.pieces) rows += piece.rows;
  const std::int64_t at_once = wide.k <= kContractionBlock ? rows : kLongRows;
  const std::int64_t end = wide.first_column + wide.columns;
  for (std::int64_t column = wide.first_column; column < end; column += blocks.columns) {
    const UnitRange columns{column, std::min(blocks.columns, end - column)};
    for (std::int64_t row = 0; row < rows; row += at_once) {
      const UnitRange some{row, std::min(at_once, rows - row)};
      GroupedBlock<T>(wide, blocks, some, columns, row + at_once >= rows).run();
    }
  }
}

#define SAMEGRAD_FLOAT(T)                                                           \
  template std::size_t matmul_grouped_scratch_bytes<T>(std::int64_t, std::int64_t); \
  template void matmul_grouped<T>(const GroupedGemm&);
#include "kernels/instantiate.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
