// Matrix products but those over examples (matmul_tree.cpp): which matrices meet, packing.
#include "ops/matmul_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/gemm_call.h"
#include "ops/grouped_gemm.h"
#include "ops/transpose.h"

namespace samegrad {
namespace {

GroupedGemm wide_product(const GemmCall& c, std::span<const RowPiece> rows,
                         const Epilogue* epilogue) {
  return {.pieces = rows,
          .k = c.k,
          .n = c.n,
          .b = c.b,
          .transposed = c.transpose_b,
          .first_column = 0,
          .columns = c.n,
          .epilogue = epilogue,
          .scratch = nullptr,
          .fetches = c.b_bytes() > thresholds().far_weight_bytes};
}

bool should_parallelize(const ParallelFor* parallel, std::int64_t work) {
  return parallel && parallel->threads() > 1 && work >= thresholds().parallel_product_work;
}

// Splits [0, rows) into parts that are whole tiles of every variant and runs them in parallel.
template <class F>
void for_row_parts(const KernelArgs& args, std::int64_t rows, std::int64_t work, const F& f) {
  if (!should_parallelize(args.parallel, work)) {
    const Scratch::Frame frame(args.scratch);
    f(std::int64_t(0), rows, args.scratch);
    return;
  }
  const std::int64_t parts = thresholds().parts_per_thread * args.parallel->threads();
  const std::int64_t height = round_up(divide_up(rows, parts), kWholeTiles);
  struct RowPartition {
    const F& f;
    std::int64_t rows, height;
  } const parts_of{f, rows, height};
  args.parallel->run(divide_up(rows, height), [&parts_of](std::int64_t part) {
    const std::int64_t begin = part * parts_of.height;
    Scratch own;
    parts_of.f(begin, std::min(begin + parts_of.height, parts_of.rows), own);
  });
}

void multiply_rows(const KernelArgs& args, const GemmCall& c, const char* a, const void* packed,
                   char* y, std::int64_t rows, const Epilogue* epilogue) {
  for_row_parts(args, rows, rows * c.k * c.n, [&](std::int64_t begin, std::int64_t end, Scratch&) {
    const std::int64_t item = std::int64_t(c.item);
    c.product.matmul(a + begin * c.k * item, end - begin, c.k, c.k, packed, c.n,
                     y + begin * c.n * item, c.n, epilogue);
  });
}

void multiply_transposed(const KernelArgs& args, const GemmCall& c, const char* a, const char* b,
                         char* y) {
  for_row_parts(
      args, c.m, c.m * c.k * c.n, [&](std::int64_t begin, std::int64_t end, Scratch& scratch) {
        const std::int64_t item = std::int64_t(c.item);
        c.product.matmul_transposed(a + begin * item, c.m, b, c.n, c.k, end - begin, c.n,
                                    y + begin * c.n * item, c.n, false,
                                    take_workspace(c.product, scratch, c.k, end - begin, c.n));
      });
}

// Rows of several pieces times one packed matrix: whole panels of it are a thread's, and parts of
// the rows where it has too few.
class PackedGemm {
 public:
  PackedGemm(const GemmCall& c, std::span<const RowPiece> pieces, const void* packed,
             const Epilogue* epilogue)
      : c_(c), pieces_(pieces), packed_(static_cast<const std::byte*>(packed)) {
    if (epilogue) epilogue_ = *epilogue;
    for (const RowPiece& piece : pieces) rows_ += piece.rows;
  }

  void run(const ParallelFor* parallel) {
    if (!should_parallelize(parallel, rows_ * c_.k * c_.n)) return multiply({0, c_.n}, 0, 1);
    const std::int64_t wanted = thresholds().parts_per_thread * parallel->threads();
    // Only panels are one after the other.
    const std::int64_t panels = c_.in_panels ? divide_up(c_.n, kWidestPanel) : 1;
    const std::int64_t width = divide_up(panels, wanted) * (c_.in_panels ? kWidestPanel : c_.n);
    const std::int64_t across = divide_up(c_.n, width);
    const std::int64_t down = std::max<std::int64_t>(1, wanted / across);
    parallel->run(across * down, [&](std::int64_t i) {
      const std::int64_t first = i % across * width;
      multiply({first, std::min(width, c_.n - first)}, i / across, down);
    });
  }

 private:
  struct ColumnRange {
    std::int64_t first, count;
  };

  // Part number `part` of the rows of each piece, in whole tiles of every variant.
  void multiply(ColumnRange columns, std::int64_t part, std::int64_t parts) const {
    const auto item = std::int64_t(c_.item);
    Epilogue epilogue = epilogue_;
    if (epilogue.bias) {
      epilogue.bias = static_cast<const std::byte*>(epilogue.bias) + columns.first * item;
    }
    for (const RowPiece& piece : pieces_) {
      const std::int64_t height = round_up(divide_up(piece.rows, parts), kWholeTiles);
      const std::int64_t begin = std::min(part * height, piece.rows);
      const std::int64_t end = std::min(begin + height, piece.rows);
      if (begin == end) continue;
      c_.product.matmul(static_cast<const std::byte*>(piece.a) + begin * c_.k * item, end - begin,
                        c_.k, c_.k, packed_ + columns.first * c_.k * item, columns.count,
                        static_cast<std::byte*>(piece.y) + (begin * c_.n + columns.first) * item,
                        c_.n, &epilogue);
    }
  }

  const GemmCall& c_;
  std::span<const RowPiece> pieces_;
  const std::byte* packed_;
  Epilogue epilogue_ = {};
  std::int64_t rows_ = 0;
};

// All matrices but those whose contraction is the tree.
void multiply(const KernelArgs& args, const GemmCall& c, const Epilogue* epilogue) {
  const Shape& a = args.in[0].shape;
  const Shape& b = args.in[1].shape;
  Scratch::Frame frame(args.scratch);
  const auto prepacked = static_cast<const char*>(args.prepacked);
  if (c.packs() && !c.transpose_a && b.size(0, b.rank() - 2) == 1) {
    const std::int64_t rows = a.size(0, a.rank() - 1);
    const RowPiece all{c.a, c.y, rows};
    if (prepacked) return PackedGemm(c, {&all, 1}, prepacked, epilogue).run(args.parallel);
    return multiply_grouped(wide_product(c, {&all, 1}, epilogue), args.in[0].dtype, args.parallel,
                            args.scratch);
  }
  void* packed = c.packs() && !prepacked ? args.scratch.take(c.packed_bytes()) : nullptr;
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
    if (packed && packed_matrix != j)
      c.pack(c.b + (packed_matrix = j) * c.b_bytes(), 0, c.n, packed);
    if (turned) swap_axes(left, c.k, c.m, 1, c.item, turned);
    const void* right = packed ? packed : prepacked + j * std::int64_t(c.packed_bytes());
    multiply_rows(args, c, turned ? turned : left, right, y, c.m, epilogue);
  });
}

}  // namespace

GemmCall multiplication(std::span<const View> in, bool transpose_a, bool transpose_b) {
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

GemmCall multiplication_of(std::span<const View> in, const Attrs& of) {
  const auto& attrs = of.as<MatmulAttrs>();
  return multiplication(in, attrs.transpose_a, attrs.transpose_b);
}

void matmul_kernel(const KernelArgs& args) {
  GemmCall c = multiplication_of(args.in, args.attrs);
  c.y = args.out[0].as<char>();
  if (args.out[0].size() > 0) multiply(args, c, nullptr);
}

void grouped_matmul(const GroupedGemmArgs& args) {
  const std::size_t replicas = args.replicas.size();
  if (replicas == 0) return;
  auto* pieces = static_cast<RowPiece*>(args.scratch.take(replicas * sizeof(RowPiece)));
  for (std::size_t r = 0; r < replicas; ++r) {
    const View& a = args.replicas[r][0];
    const std::int64_t rows = a.shape.size(0, a.shape.rank() - 1);
    pieces[r] = {a.data, args.replicas[r].back().data, rows};
  }
  const std::span<const View> views = args.replicas[0];
  const GemmCall c = multiplication_of(views, args.attrs);
  const auto* with_bias = args.attrs.get_if<MatmulBiasAttrs>();
  const Epilogue epilogue = with_bias ? Epilogue{views[2].data, with_bias->activation} : Epilogue{};
  const std::span<const RowPiece> all(pieces, replicas);
  if (args.prepacked) return PackedGemm(c, all, args.prepacked, &epilogue).run(&args.parallel);
  multiply_grouped(wide_product(c, all, &epilogue), views[0].dtype, &args.parallel, args.scratch);
}

bool is_grouped_gemm(const Attrs& attrs) {
  return !attrs.as<MatmulAttrs>().transpose_a;
}

void matmul_bias_kernel(const KernelArgs& args) {
  const auto& attrs = args.attrs.as<MatmulBiasAttrs>();
  GemmCall c = multiplication(args.in, false, attrs.transpose_b);
  c.y = args.out[0].as<char>();
  if (args.out[0].size() == 0) return;
  const Epilogue epilogue{args.in[2].data, attrs.activation};
  multiply(args, c, &epilogue);
}

namespace {

std::size_t matmul_packed_bytes(std::span<const View> in, const Attrs& attrs) {
  const GemmCall c = multiplication_of(in, attrs);
  if (!c.packs()) return 0;
  return std::size_t(in[1].shape.size(0, in[1].shape.rank() - 2)) * c.packed_bytes();
}

std::int64_t matmul_packed_columns(std::span<const View> in, const Attrs& attrs) {
  const GemmCall c = multiplication_of(in, attrs);
  return c.in_panels ? c.n : std::min<std::int64_t>(c.n, 1);
}

void matmul_pack(std::span<const View> in, const Attrs& attrs, std::int64_t begin, std::int64_t end,
                 void* prepacked) {
  const GemmCall c = multiplication_of(in, attrs);
  if (!c.packs()) return;
  end = c.in_panels ? std::min(end, c.n) : c.n;  // else rows of all columns, packed as a whole
  const std::int64_t matrices = in[1].shape.size(0, in[1].shape.rank() - 2);
  for (std::int64_t i = 0; i < matrices; ++i) {
    c.pack(c.b + i * c.b_bytes(), begin, end,
           static_cast<char*>(prepacked) + i * std::int64_t(c.packed_bytes()));
  }
}

}  // namespace

Prepacking matmul_prepacking() {
  return {1, matmul_packed_bytes, matmul_packed_columns, matmul_pack};
}

}  // namespace samegrad
