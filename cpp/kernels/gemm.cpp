#include "kernels/gemm.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/rounding.h"
#include "kernels/conv_channels.h"
#include "kernels/gemm_k_blocks.h"
#include "kernels/gemm_micro_kernel.h"
#include "kernels/gemm_narrow.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

template <class T>
using TileFn = void (*)(const Tile<T>&, std::int64_t, const Gemm<T>&);

// Entry r - 1 multiplies r rows.
template <class T, int kPanels, int kVectors, int... kRow>
constexpr auto tile_functions(std::integer_sequence<int, kRow...>) {
  return std::array<TileFn<T>, sizeof...(kRow)>{
      &TileProduct<T, kRow + 1, kPanels, kVectors>::run...};
}
template <class T, int kPanels, int kVectors, int kRows>
constexpr auto kTileFunctions =
    tile_functions<T, kPanels, kVectors>(std::make_integer_sequence<int, kRows>());

// Up to this many rows a tile spans several panels: one alone would wait for its own sums.
constexpr int kFewRows = kTileRows / 2;

// One call of multiply(): the panels of B seen as tiles' columns.
template <class T>
class GemmDriver {
 public:
  explicit GemmDriver(const Gemm<T>& product)
      : product_(product), whole_panels_(product.b.columns / kWide) {
    const std::int64_t rest = product.b.columns % kWide;
    if (rest == 0 || product.bias == nullptr) return;
    std::fill(last_bias_, last_bias_ + kWide, T(0));
    std::copy_n(product.bias + whole_panels_ * kWide, rest, last_bias_);
  }

  // Tiles of nearly equal height, so that none is much too small to be fast.
  void run() const {
    const std::int64_t tiles = divide_up(product_.rows, kTileRows);
    const std::int64_t height = product_.rows / tiles;
    const std::int64_t taller = product_.rows % tiles;
    run_tiles(0, taller, height + 1);
    run_tiles(taller * (height + 1), tiles - taller, height);
  }

 private:
  static constexpr std::int64_t kWide = kPanelColumns<T>;

  Tile<T> tile(std::int64_t first_row, std::int64_t panel) const {
    const Panels<T>& b = product_.b;
    const std::int64_t column = panel * kWide;
    const std::int64_t row_step = is_narrow(panel) ? b.narrow_row_step : b.row_step;
    const bool part = panel == whole_panels_;
    const T* bias = product_.bias == nullptr ? nullptr : part ? last_bias_ : product_.bias + column;
    return {.a = product_.a + first_row,
            .y = product_.y + first_row,
            .b = b.data + panel * b.panel_step + product_.b_first_row * row_step,
            .panel_step = b.panel_step,
            .row_step = row_step,
            .first_column = column,
            .bias = bias};
  }

  bool is_narrow(std::int64_t panel) const {
    return product_.b.columns - panel * kWide <= Vec<T>::kLanes;
  }

  std::int64_t panel_count() const { return divide_up(product_.b.columns, kWide); }

  void run_column(std::int64_t row, std::int64_t tiles, std::int64_t height,
                  std::int64_t panel) const {
    Tile<T> t = tile(row, panel);
    const auto i = static_cast<std::size_t>(height - 1);
    const TileFn<T> fn = is_narrow(panel) ? kTileFunctions<T, 1, 1, kTileRows>[i]
                                          : kTileFunctions<T, 1, 2, kTileRows>[i];
    if (panel < whole_panels_) return fn(t, tiles, product_);
    for (std::int64_t n = 0; n < tiles; ++n, t.a += height, t.y += height) run_part(fn, t, height);
  }

  // Columns beyond the matrix exist in the registers but not in memory. Once, not for each caller.
  [[gnu::noinline]] void run_part(TileFn<T> fn, Tile<T> t, std::int64_t height) const {
    T part[kTileRows][kWide];
    T* rows[kTileRows];
    T* const* y = t.y;
    const std::int64_t column = t.first_column;
    const std::int64_t columns = product_.b.columns - column;
    for (std::int64_t r = 0; r < height; ++r) {
      rows[r] = part[r];
      if (product_.accumulate) copy_part<kWide / 2>(y[r] + column, columns, part[r]);
    }
    t.y = rows;
    t.first_column = 0;
    fn(t, 1, product_);
    for (std::int64_t r = 0; r < height; ++r) {
      copy_part<kWide / 2>(part[r], columns, y[r] + column);
    }
  }

  // By powers of two: a copy of known length is a few instructions, one of unknown length a call.
  template <std::int64_t kCount>
  static void copy_part(const T* from, std::int64_t count, T* to) {
    const bool some = (count & kCount) != 0;
    if (some) std::copy_n(from, kCount, to);
    if constexpr (kCount > 1) {
      const std::int64_t done = some ? kCount : 0;
      copy_part<kCount / 2>(from + done, count, to + done);
    }
  }

  void run_tiles(std::int64_t row, std::int64_t tiles, std::int64_t height) const {
    if (height <= kFewRows) {
      run_few(row, tiles, height);
    } else {
      run_many(row, tiles, height);
    }
  }

  // Panel by panel: a panel stays in the first cache while the rows pass by.
  void run_many(std::int64_t row, std::int64_t tiles, std::int64_t height) const {
    for (std::int64_t p = 0; tiles > 0 && p < panel_count(); ++p) run_column(row, tiles, height, p);
  }

  void run_few(std::int64_t row, std::int64_t tiles, std::int64_t height) const {
    if (tiles == 0) return;
    const auto i = static_cast<std::size_t>(height - 1);
    std::int64_t p = 0;
    for (; height == 1 && p + 4 <= whole_panels_; p += 4) {
      kTileFunctions<T, 4, 2, 1>[0](tile(row, p), tiles, product_);
    }
    for (; p + 2 <= whole_panels_; p += 2) {
      kTileFunctions<T, 2, 2, kFewRows>[i](tile(row, p), tiles, product_);
    }
    for (; p < panel_count(); ++p) run_column(row, tiles, height, p);
  }

  const Gemm<T>& product_;
  const std::int64_t whole_panels_;
  T last_bias_[kWide];
};

}  // namespace

namespace {

// A chain or a part of one. The one place where tiles are laid out, so that all of it is inlined.
template <class T>
[[gnu::noinline]] void multiply_tiles(const Gemm<T>& product) {
  if (product.by_channel) return multiply_channels(product);
  if (is_narrow(product)) return multiply_narrow(product);
  GemmDriver<T>(product).run();
}

// Products at a time, so that a panel of B stays in the first cache.
constexpr std::int64_t kPieceDepth = 384;

// Products `first` … `first + count` of the walk of a long contraction, or fewer: whole segments
// where it can. Returns how many.
template <class T>
std::int64_t narrow(Gemm<T>& product, const AccessPattern& walk, std::int64_t first,
                    std::int64_t count, std::int64_t* a_offset) {
  const std::int64_t segment = first / walk.length, offset = first % walk.length;
  const std::int64_t outer = segment / walk.inner, inner = segment % walk.inner;
  *a_offset = outer * walk.a_outer + inner * walk.a_inner + offset * walk.a_step;
  product.b_first_row = outer * walk.b_outer + inner * walk.b_inner + offset;
  const std::int64_t depth = std::min(count, kPieceDepth);
  AccessPattern& piece = product.walk;
  piece = walk;
  piece.outer = piece.inner = 1;
  if (offset > 0 || depth < walk.length) {
    piece.length = std::min(depth, walk.length - offset);
  } else if (inner > 0 || depth < walk.inner * walk.length) {
    piece.inner = std::min(depth / walk.length, walk.inner - inner);
  } else {
    piece.inner = walk.inner;
    piece.outer = std::min(depth / (walk.inner * walk.length), walk.outer - outer);
  }
  return piece.outer * piece.inner * piece.length;
}

// One chain of a block of a long contraction, a piece after the other.
template <class T>
void multiply_chain(const Gemm<T>& whole, const ChainBlock& block, std::int64_t first,
                    std::int64_t count, T* const* y) {
  const T* a[kMaxRows];
  Gemm<T> piece = whole;
  piece.a = a;
  piece.y = y;
  piece.rows = block.rows;
  piece.b.columns = block.columns;
  // By channel, A and B have the columns of the result.
  piece.b.data +=
      whole.by_channel ? block.column : block.column / kPanelColumns<T> * whole.b.panel_step;
  const T* const* a_rows = whole.a + block.row;
  const std::int64_t a_column = whole.by_channel ? block.column : 0;
  piece.accumulate = false;
  piece.bias = nullptr;
  piece.activation = Activation::kNone;
  for (const std::int64_t end = first + count; first < end; piece.accumulate = true) {
    std::int64_t a_offset = 0;
    first += narrow(piece, whole.walk, first, end - first, &a_offset);
    piece.b_first_row += whole.b_first_row;
    for (std::int64_t r = 0; r < block.rows; ++r) a[r] = a_rows[r] + a_column + a_offset;
    multiply_tiles(piece);
  }
}

template <class T>
void multiply_long(const Gemm<T>& product, std::int64_t products) {
  join_chains<T>(product.y, product.rows, product.b.columns, products, product.accumulate,
                 [&](const ChainBlock& block, std::int64_t first, std::int64_t count,
                     T* const* to) { multiply_chain(product, block, first, count, to); });
  for (std::int64_t r = 0; r < product.rows; ++r) {
    finish_row(product.y[r], product.b.columns, product.bias, product.activation);
  }
}

}  // namespace

template <class T>
void multiply(const Gemm<T>& product) {
  if (product.rows == 0 || product.b.columns == 0) return;
  const std::int64_t products = product.walk.outer * product.walk.inner * product.walk.length;
  if (products > kContractionBlock) [[unlikely]]
    return multiply_long(product, products);
  multiply_tiles(product);
}

#define SAMEGRAD_FLOAT(T) template void multiply(const Gemm<T>&);
#include "kernels/instantiate.def"

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
