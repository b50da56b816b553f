#include "ops/grouped_gemm.h"

#include <algorithm>

#include "base/rounding.h"
#include "base/thresholds.h"

namespace samegrad {
namespace {

constexpr std::int64_t kPackRows = 12;  // that a block multiplies while it packs its columns

constexpr std::int64_t kWorthCopying = 256;  // columns that share a copy of the rows

struct Cut {
  std::int64_t rows, columns;  // of a block
  std::int64_t across;         // blocks beside each other
  std::int64_t blocks;
};

std::int64_t rows_of(const GroupedGemm& whole) {
  std::int64_t rows = 0;
  for (const RowPiece& piece : whole.pieces) rows += piece.rows;
  return rows;
}

// Columns first, as a block of columns reads its part of the matrix alone.
Cut cut_into(const GroupedGemm& whole, std::int64_t wanted) {
  const std::int64_t rows = rows_of(whole), panels = divide_up(whole.n, kWidestPanel);
  const std::int64_t columns = divide_up(panels, std::min(wanted, panels)) * kWidestPanel;
  const std::int64_t across = divide_up(whole.n, columns);
  const std::int64_t down =
      std::clamp<std::int64_t>(rows / kWholeTiles, 1, divide_up(wanted, across));
  const std::int64_t height = divide_up(rows, down);
  return {height, columns, across, across * divide_up(rows, height)};
}

// The work of the busiest thread.
std::int64_t longest(const Cut& by, int threads) {
  return divide_up(by.blocks, threads) * (by.rows + kPackRows) * by.columns;
}

// Some blocks for each thread, as one whose core is busy otherwise would keep the others waiting;
// but no narrower ones than a copy of the rows is worth. More where that leaves threads without
// work.
Cut cut(const GroupedGemm& whole, const ParallelFor* parallel) {
  const int threads = parallel ? parallel->threads() : 1;
  const std::int64_t work = rows_of(whole) * whole.k * whole.n;
  if (threads < 2 || work < thresholds().parallel_product_work) return cut_into(whole, 1);
  const std::int64_t worth = std::max<std::int64_t>(1, whole.n / (kWorthCopying * threads));
  Cut best = cut_into(whole, std::min(worth, thresholds().parts_per_thread) * threads);
  for (std::int64_t parts = 2; parts <= thresholds().parts_per_thread; ++parts) {
    const Cut finer = cut_into(whole, parts * threads);
    if (longest(finer, threads) * 16 < longest(best, threads) * 15) best = finer;
  }
  return best;
}

// The rows [begin, end) of all pieces.
std::span<const RowPiece> rows_between(const GroupedGemm& whole, std::size_t item,
                                       std::int64_t begin, std::int64_t end, Scratch& scratch) {
  auto* pieces = static_cast<RowPiece*>(scratch.take(whole.pieces.size() * sizeof(RowPiece)));
  std::size_t count = 0;
  for (const RowPiece& piece : whole.pieces) {
    const std::int64_t first = std::max<std::int64_t>(begin, 0);
    const std::int64_t rows = std::min(end, piece.rows) - first;
    begin -= piece.rows;
    end -= piece.rows;
    if (rows <= 0) continue;
    const auto width = std::int64_t(item);
    pieces[count++] = {static_cast<const std::byte*>(piece.a) + first * whole.k * width,
                       static_cast<std::byte*>(piece.y) + first * whole.n * width, rows};
  }
  return {pieces, count};
}

}  // namespace

void multiply_grouped(const GroupedGemm& whole, DType dtype, const ParallelFor* parallel,
                      Scratch& scratch) {
  if (rows_of(whole) == 0 || whole.n == 0) return;
  const ProductKernels& product = kernels().product(dtype);
  const Cut by = cut(whole, parallel);
  const auto multiply_block = [&](std::int64_t i, Scratch& own) {
    const Scratch::Frame frame(own);
    GroupedGemm block = whole;
    const std::int64_t row = i / by.across * by.rows;
    block.pieces = rows_between(whole, size_of(dtype), row, row + by.rows, own);
    block.first_column = i % by.across * by.columns;
    block.columns = std::min(by.columns, whole.n - block.first_column);
    block.scratch = own.take(product.matmul_grouped_scratch_bytes(whole.k, block.columns));
    product.matmul_grouped(block);
  };
  if (by.blocks == 1) return multiply_block(0, scratch);
  parallel->run(by.blocks, [&](std::int64_t i) {
    Scratch own;
    multiply_block(i, own);
  });
}

}  // namespace samegrad
