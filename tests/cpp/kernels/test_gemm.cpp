// Products against the chain their contract states, bit by bit, in every variant that runs here.
#include <limits>

#include "kernels/elementwise_fn.h"
#include "kernels/products.h"

namespace samegrad {
namespace {

struct Sizes {
  std::int64_t m, k, n;
};

// Small sizes in every combination of interest, and a few beyond every block and group.
std::vector<Sizes> all_sizes() {
  std::vector<Sizes> sizes;
  for (std::int64_t m = 0; m <= 20; ++m) {
    for (std::int64_t n = 0; n <= 40; ++n) sizes.push_back({m, (7 * m + 3 * n) % 21, n});
  }
  for (int i = 0; i < 150; ++i) sizes.push_back({any_of(1, 20), any_of(1, 20), any_of(1, 20)});
  for (int i = 0; i < 25; ++i) sizes.push_back({any_of(1, 210), any_of(1, 900), any_of(1, 140)});
  sizes.push_back({97, 385, 33});
  sizes.push_back({1, 1600, 64});
  sizes.push_back({401, 300, 70});
  for (const std::int64_t k : {4096, 4097, 8192, 8193, 13000, 20481}) {
    sizes.push_back({any_of(1, 12), k, any_of(1, 40)});
  }
  return sizes;
}

template <class T>
void check_matmul(const KernelTable& table, const ProductKernels& p, Sizes s) {
  const Chain chain(table);
  const bool transposed = any_of(0, 1) == 1;
  const std::int64_t lda = s.k + any_of(0, 3), ldy = s.n + any_of(0, 3);
  const std::int64_t ldb = (transposed ? s.k : s.n) + any_of(0, 3);
  const Block<T> a(s.m * lda), b((transposed ? s.n : s.k) * ldb), bias(s.n);
  const Epilogue epilogue{any_of(0, 1) == 1 ? bias.data() : nullptr,
                          any_of(0, 1) == 1 ? Activation::kRelu : Activation::kNone};
  Block<T> y(s.m * ldy);
  Block<T> expected = y;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      const T sum = chain.contract<T>(s.k, [&](std::int64_t c) {
        return std::pair(a[i * lda + c], transposed ? b[j * ldb + c] : b[c * ldb + j]);
      });
      expected[i * ldy + j] = finish(sum, epilogue, j);
    }
  }
  Scratch form = packed(p, b.data(), s.k, s.n, ldb, transposed);
  p.matmul(a.data(), s.m, s.k, lda, form.data(), s.n, y.data(), ldy, &epilogue);
  CHECK(same_bits(y, expected), table.isa, " ", sizeof(T), " m ", s.m, " k ", s.k, " n ", s.n);
}

TEST("matmul is one chain per element, for any sizes, strides and epilogue") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    for (const Sizes& s : all_sizes()) check_matmul<decltype(zero)>(table, p, s);
  });
}

template <class T>
void check_matmul_transposed(const KernelTable& table, const ProductKernels& p, Sizes s) {
  const Chain chain(table);
  const std::int64_t rows = s.k;
  const std::int64_t lda = s.m + any_of(0, 3), ldb = s.n + any_of(0, 3), ldy = s.n + any_of(0, 3);
  const Block<T> a(rows * lda), b(rows * ldb);
  Block<T> y(s.m * ldy);
  Block<T> expected = y;
  const bool accumulate = any_of(0, 1) == 1;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      T& sum = expected[i * ldy + j];
      if (!accumulate) sum = 0;
      sum = chain.contract<T>(
          rows, [&](std::int64_t r) { return std::pair(a[r * lda + i], b[r * ldb + j]); }, sum);
    }
  }
  const std::int64_t split = rows > kContractionBlock ? rows : any_of(0, rows);
  // The end of the workspace is the end of its memory.
  const std::size_t bytes = p.transposed_workspace_bytes(split, s.m, s.n);
  Scratch workspace(bytes);
  void* const some = bytes == 0 || any_of(0, 1) == 1 ? nullptr : workspace.data();
  p.matmul_transposed(a.data(), lda, b.data(), ldb, split, s.m, s.n, y.data(), ldy, accumulate,
                      some);
  if (split < rows) {
    p.matmul_transposed(a.data() + split * lda, lda, b.data() + split * ldb, ldb, rows - split, s.m,
                        s.n, y.data(), ldy, true, nullptr);
  }
  CHECK(same_bits(y, expected), table.isa, " ", sizeof(T), " m ", s.m, " rows ", rows, " n ", s.n);
}

TEST("matmul_transposed is one chain per element, split at any row") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    for (const Sizes& s : all_sizes()) check_matmul_transposed<decltype(zero)>(table, p, s);
  });
}

TEST("a row has the same bits alone, among others and at any place") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    for (std::int64_t n : {1, 4, 10, 16, 33, 64}) {
      const std::int64_t k = any_of(1, 500), m = 130;
      const Block<T> a(m * k), b(k * n);
      Scratch form = packed(p, b.data(), k, n, n);
      Block<T> all(m * n);
      p.matmul(a.data(), m, k, k, form.data(), n, all.data(), n, nullptr);
      for (std::int64_t count = 1; count <= 20; ++count) {
        const std::int64_t first = any_of(0, m - count);
        Block<T> some(count * n);
        p.matmul(a.data() + first * k, count, k, k, form.data(), n, some.data(), n, nullptr);
        const auto bytes = static_cast<std::size_t>(count * n) * sizeof(T);
        CHECK(std::memcmp(some.data(), all.data() + first * n, bytes) == 0, table.isa, " n ", n);
      }
    }
  });
}

TEST("a product is close to the exact one") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    const std::int64_t m = 7, k = 300, n = 19;
    const Block<T> a(m * k), b(k * n);
    Scratch form = packed(p, b.data(), k, n, n);
    Block<T> y(m * n);
    p.matmul(a.data(), m, k, k, form.data(), n, y.data(), n, nullptr);
    for (std::int64_t i = 0; i < m * n; ++i) {
      long double sum = 0, size = 0;
      for (std::int64_t c = 0; c < k; ++c) {
        const long double term = static_cast<long double>(a[i / n * k + c]) * b[c * n + i % n];
        sum += term;
        size += std::fabs(term);
      }
      CHECK(std::fabs(y[i] - sum) <= size * 50 * std::numeric_limits<T>::epsilon(), table.isa);
    }
  });
}

// One dimension of a window that fits in: sizes of the input, the output and the window, stride,
// padding before it and dilation.
struct AnyAxis {
  std::int64_t in, out, window, stride, pad, dilation;
};
AnyAxis any_axis(std::int64_t most, bool dilated) {
  for (;;) {
    AnyAxis a{any_of(1, most), 0, any_of(1, 5), any_of(1, 3), 0, dilated ? any_of(1, 4) : 1};
    const std::int64_t extent = (a.window - 1) * a.dilation + 1;
    const bool padded = any_of(0, 2) > 0;
    a.pad = padded ? any_of(0, extent - 1) : 0;
    const std::int64_t room = a.in + a.pad + (padded ? any_of(0, extent - 1) : 0) - extent;
    if (room < 0) continue;
    a.out = room / a.stride + 1;
    return a;
  }
}

WindowGeometry any_geometry(bool general) {
  const AnyAxis rows = any_axis(11, general), columns = any_axis(11, general);
  WindowGeometry g{rows.in,       columns.in,  any_of(1, 20),  rows.out,        columns.out,
                   any_of(1, 40), rows.window, columns.window, rows.stride,     columns.stride,
                   rows.pad,      columns.pad, rows.dilation,  columns.dilation};
  if (!general) return g;
  if (any_of(0, 1) == 1) {
    g.groups = any_of(2, 20);
    g.in_channels = g.groups * (any_of(0, 1) == 1 ? 1 : any_of(1, 5));
    g.out_channels = g.groups * (any_of(0, 2) == 0 ? 1 : any_of(1, 9));
  }
  if (any_of(0, 1) == 1) {
    const AnyAxis depth = any_axis(5, true);
    g.in_depth = depth.in, g.out_depth = depth.out, g.window_depth = depth.window;
    g.stride_depth = depth.stride, g.pad_front = depth.pad, g.dilation_depth = depth.dilation;
  }
  return g;
}

// Few channels on one side, where pixels along a line are the lanes: lines of more than a register.
WindowGeometry any_narrow_geometry() {
  const AnyAxis rows = any_axis(13, true), columns = any_axis(40, true);
  const std::int64_t few = any_of(1, 5), many = any_of(8, 20), groups = any_of(1, 2);
  const bool to_few = any_of(0, 1) == 1;
  WindowGeometry g{rows.in,        columns.in,       groups * (to_few ? many : few),
                   rows.out,       columns.out,      groups * (to_few ? few : many),
                   rows.window,    columns.window,   rows.stride,
                   columns.stride, rows.pad,         columns.pad,
                   rows.dilation,  columns.dilation, groups};
  if (any_of(0, 3) > 0) return g;
  const AnyAxis depth = any_axis(3, true);
  g.in_depth = depth.in, g.out_depth = depth.out, g.window_depth = depth.window;
  g.stride_depth = depth.stride, g.pad_front = depth.pad, g.dilation_depth = depth.dilation;
  return g;
}

std::string text_of(const WindowGeometry& g) {
  std::ostringstream out;
  out << "in " << g.in_height << 'x' << g.in_width << 'x' << g.in_channels << " window "
      << g.window_height << 'x' << g.window_width << " stride " << g.stride_height << ','
      << g.stride_width << " pad " << g.pad_top << ',' << g.pad_left << " out " << g.out_height
      << 'x' << g.out_width << 'x' << g.out_channels << " dilation " << g.dilation_height << ','
      << g.dilation_width << " groups " << g.groups << " depth " << g.in_depth << " to "
      << g.out_depth << " window " << g.window_depth << " stride " << g.stride_depth << " pad "
      << g.pad_front << " dilation " << g.dilation_depth;
  return out.str();
}

std::vector<WindowGeometry> all_geometries() {
  std::vector<WindowGeometry> all = {
      {28, 28, 1, 26, 26, 32, 3, 3, 1, 1, 0, 0}, {13, 13, 32, 11, 11, 64, 3, 3, 1, 1, 0, 0},
      {14, 14, 3, 14, 14, 17, 3, 3, 1, 1, 1, 1}, {28, 28, 1, 14, 14, 64, 5, 5, 2, 2, 1, 1},
      {2, 2, 5, 2, 2, 3, 5, 5, 1, 1, 2, 2},      {7, 7, 20, 7, 7, 33, 1, 1, 1, 1, 0, 0},
      {7, 7, 2, 3, 3, 8, 1, 1, 3, 3, 0, 0},      {1, 40, 1, 1, 38, 1, 1, 3, 1, 1, 0, 0},
      {3, 3, 2, 7, 7, 4, 2, 2, 1, 1, 3, 3}};  // the last: windows wholly in the padding
  for (int i = 0; i < 300; ++i) all.push_back(any_geometry(false));
  for (int i = 0; i < 400; ++i) all.push_back(any_geometry(true));
  for (int i = 0; i < 200; ++i) all.push_back(any_narrow_geometry());
  return all;
}

template <class F>
void for_each_geometry(F&& f) {
  for_each_kernel([&](const KernelTable& table, const ProductKernels& p, auto zero) {
    for (const WindowGeometry& g : all_geometries()) f(table, p, g, zero);
  });
}

TEST("conv2d is a chain over the taps that are on the image") {
  for_each_geometry([](const KernelTable& table, const ProductKernels& p, const WindowGeometry& g,
                       auto zero) {
    using T = decltype(zero);
    const Chain chain(table);
    const Block<T> x(g.in_size()), filter(g.patch_size() * g.out_channels), bias(g.out_channels);
    const Epilogue epilogue{any_of(0, 1) == 1 ? bias.data() : nullptr,
                            any_of(0, 1) == 1 ? Activation::kRelu : Activation::kNone};
    Block<T> y(g.out_size()), expected = filled<T>(g.out_size(), 0);
    for_each_meeting(g, [&](std::int64_t i, std::int64_t o, std::int64_t tap) {
      for_each_product(g, i, o, tap, [&](std::int64_t in, std::int64_t out, std::int64_t weight) {
        chain.add(x[in], filter[weight], expected[out]);
      });
    });
    for (std::int64_t i = 0; i < g.out_size(); ++i) {
      expected[i] = finish(expected[i], epilogue, i % g.out_channels);
    }
    run_conv2d(p, g, x, filter, epilogue, y);
    CHECK(same_bits(y, expected), table.isa, " ", sizeof(T), " ", text_of(g));
  });
}

TEST("an infinite weight outside the image makes no NaN") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    const WindowGeometry g{1, 1, 2, 1, 1, 3, 3, 3, 1, 1, 1, 1};
    Block<T> x(2), filter = filled<T>(54, std::numeric_limits<T>::infinity()), y(3);
    std::fill_n(filter.data() + 24, 6, T(1));
    run_conv2d(p, g, x, filter, {}, y);
    for (std::int64_t i = 0; i < 3; ++i) CHECK(std::isfinite(y[i]), table.isa);
    const WindowGeometry narrow{1, 1, 9, 1, 1, 1, 3, 3, 1, 1, 1, 1};
    Block<T> x9(9), weights = filled<T>(81, std::numeric_limits<T>::infinity()), y1(1);
    std::fill_n(weights.data() + 36, 9, T(1));
    run_conv2d(p, narrow, x9, weights, {}, y1);
    CHECK(std::isfinite(y1[0]), table.isa);
  });
}

TEST("conv2d_input_grad is a chain over the taps, then the out channels") {
  for_each_geometry(
      [](const KernelTable& table, const ProductKernels& p, const WindowGeometry& g, auto zero) {
        using T = decltype(zero);
        const Chain chain(table);
        const Block<T> dy(g.out_size()), filter(g.patch_size() * g.out_channels);
        Block<T> dx(g.in_size()), expected = filled<T>(g.in_size(), 0);
        const auto add = [&](std::int64_t in, std::int64_t out, std::int64_t weight) {
          chain.add(dy[out], filter[weight], expected[in]);
        };
        for (std::int64_t t = 0; t < g.taps(); ++t) {
          for_each_meeting(g, [&](std::int64_t i, std::int64_t o, std::int64_t tap) {
            if (tap == t) for_each_product(g, i, o, tap, add);
          });
        }
        Scratch form(p.conv2d_input_grad_packed_bytes(g));
        Scratch scratch(p.conv2d_input_grad_scratch_bytes(g));
        p.conv2d_input_grad_pack(g, filter.data(), 0, g.group_in(), form.data());
        p.conv2d_input_grad(g, dy.data(), form.data(), dx.data(), scratch.data());
        CHECK(same_bits(dx, expected), table.isa, " ", sizeof(T), " ", text_of(g));
      });
}

TEST("infinities and NaN of the cotangent reach the pixels that see them, and no others") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    for (const std::int64_t stride : {1, 2}) {
      const std::int64_t size = (20 + 2 - 3) / stride + 1;
      const WindowGeometry g{20, 20, 1, size, size, 9, 3, 3, stride, stride, 1, 1};
      Block<T> dy = filled<T>(g.out_size(), 1), filter = filled<T>(81, 1), dx(g.in_size());
      const std::int64_t row = size - 1, column = size / 2;
      dy[(row * size + column) * 9 + 4] = std::numeric_limits<T>::infinity();
      dy[(0 * size + 0) * 9 + 8] = std::numeric_limits<T>::quiet_NaN();
      Scratch form(p.conv2d_input_grad_packed_bytes(g));
      Scratch scratch(p.conv2d_input_grad_scratch_bytes(g));
      p.conv2d_input_grad_pack(g, filter.data(), 0, g.group_in(), form.data());
      p.conv2d_input_grad(g, dy.data(), form.data(), dx.data(), scratch.data());
      for (std::int64_t i = 0; i < 400; ++i) {
        const std::int64_t y = i / 20, x = i % 20;
        const bool sees_nan = y < 2 && x < 2;
        const bool sees_infinity =
            std::abs(y - row * stride) < 2 && std::abs(x - column * stride) < 2;
        CHECK(std::isnan(dx[i]) == sees_nan, table.isa, " stride ", stride, " pixel ", i);
        CHECK(std::isinf(dx[i]) == sees_infinity, table.isa, " stride ", stride, " pixel ", i);
      }
    }
  });
}

TEST("conv2d_filter_grad is a chain over the output pixels, example after example") {
  for_each_geometry([](const KernelTable& table, const ProductKernels& p, const WindowGeometry& g,
                       auto zero) {
    using T = decltype(zero);
    const Chain chain(table);
    Block<T> result(g.patch_size() * g.out_channels), expected = filled<T>(result.size(), 0);
    Scratch scratch(p.conv2d_filter_grad_scratch_bytes(g, whole_filter(g)));
    for (int example = 0; example < 2; ++example) {
      const Block<T> x(g.in_size()), dy(g.out_size());
      for_each_meeting(g, [&](std::int64_t i, std::int64_t o, std::int64_t tap) {
        for_each_product(g, i, o, tap, [&](std::int64_t in, std::int64_t out, std::int64_t weight) {
          chain.add(x[in], dy[out], expected[weight]);
        });
      });
      p.conv2d_filter_grad(g, x.data(), dy.data(), whole_filter(g), result.data(), example > 0,
                           scratch.data());
    }
    CHECK(same_bits(result, expected), table.isa, " ", sizeof(T), " ", text_of(g));
  });
}

// The gradient of the filter over some examples: chains of leaves, joined.
template <class T>
Block<T> sum_of_examples(const ProductKernels& p, const WindowGeometry& g, const Block<T>& x,
                         const Block<T>& dy, std::int64_t images, std::int64_t begin,
                         std::int64_t end) {
  return testing::by_specification(
      begin, end - begin, 4, 1,
      [&](std::int64_t first, std::int64_t count) {
        Block<T> leaf(g.patch_size() * g.out_channels);
        Scratch scratch(p.conv2d_filter_grad_scratch_bytes(g, whole_filter(g)));
        for (std::int64_t i = first * images; i < (first + count) * images; ++i) {
          p.conv2d_filter_grad(g, x.data() + i * g.in_size(), dy.data() + i * g.out_size(),
                               whole_filter(g), leaf.data(), i > first * images, scratch.data());
        }
        return leaf;
      },
      [](Block<T> left, const Block<T>& right) {
        for (std::int64_t i = 0; i < left.size(); ++i) left[i] = left[i] + right[i];
        return left;
      });
}

// Calls f(block) for blocks that cover the filter; rows are as in the whole one.
template <class F>
void for_each_filter_block(const WindowGeometry& g, const F& f) {
  for (std::int64_t row = 0, rows = 0; row < g.patch_size(); row += rows) {
    rows = std::min(any_of(1, 40), g.patch_size() - row);
    for (std::int64_t column = 0, columns = 0; column < g.out_channels; column += columns) {
      columns = std::min(any_of(1, 50), g.out_channels - column);
      f(FilterBlock{row, column, rows, columns, g.out_channels});
    }
  }
}

TEST("an element of a filter's gradient has the same bits in any block") {
  for_each_geometry(
      [](const KernelTable& table, const ProductKernels& p, const WindowGeometry& g, auto zero) {
        using T = decltype(zero);
        const Block<T> x(g.in_size()), dy(g.out_size());
        const Block<T> whole = sum_of_examples(p, g, x, dy, 1, 0, 1);
        Block<T> parts(whole.size());
        for_each_filter_block(g, [&](const FilterBlock& block) {
          Scratch scratch(p.conv2d_filter_grad_scratch_bytes(g, block));
          T* to = parts.data() + block.row * block.stride + block.column;
          p.conv2d_filter_grad(g, x.data(), dy.data(), block, to, false, scratch.data());
        });
        CHECK(same_bits(parts, whole), table.isa, " ", sizeof(T), " ", text_of(g));
      });
}

TEST("conv2d_filter_tree has the bits of leaves and joins, in any block") {
  for_each_geometry(
      [](const KernelTable& table, const ProductKernels& p, const WindowGeometry& g, auto zero) {
        using T = decltype(zero);
        const std::int64_t examples = any_of(1, 40), images = any_of(1, 2);
        const Block<T> x(examples * images * g.in_size()), dy(examples * images * g.out_size());
        const Block<T> whole = sum_of_examples(p, g, x, dy, images, 0, examples);
        Block<T> parts(whole.size());
        for_each_filter_block(g, [&](const FilterBlock& block) {
          Scratch scratch(p.conv2d_filter_tree_scratch_bytes(g, examples, images, block));
          T* to = parts.data() + block.row * block.stride + block.column;
          p.conv2d_filter_tree(g, x.data(), dy.data(), examples, images, block, to, scratch.data());
        });
        CHECK(same_bits(parts, whole), table.isa, " ", sizeof(T), " ", text_of(g), " examples ",
              examples, " of ", images);
      });
}

TEST("relu after a product is the elementwise relu, also of NaN and -0") {
  for_each_variant([](const KernelTable& table) {
    const ProductKernels& p = table.product(DType::kFloat32);
    const std::int64_t n = 35;
    Block<float> a(1), b(n), bias(n), y(n), expected(n);
    bias[3] = std::numeric_limits<float>::quiet_NaN();
    bias[20] = -std::numeric_limits<float>::infinity();
    a[0] = -1e-30f, b[5] = 1e-30f, bias[5] = -0.0f;  // -0: the product is rounded to it
    Scratch form = packed(p, b.data(), 1, n, n);
    const Epilogue plain{bias.data(), Activation::kNone}, relu{bias.data(), Activation::kRelu};
    p.matmul(a.data(), 1, 1, 1, form.data(), n, expected.data(), n, &plain);
    table.unary(UnaryFn::k_relu, DType::kFloat32)(expected.data(), expected.data(), n);
    p.matmul(a.data(), 1, 1, 1, form.data(), n, y.data(), n, &relu);
    CHECK(same_bits(y, expected), table.isa);
  });
}

template <class T>
void check_integers(const ProductKernels& p, Sizes s) {
  const Block<T> a(s.m * s.k), b(s.k * s.n), at(s.k * s.m);
  Block<T> y(s.m * s.n), expected(s.m * s.n);
  const auto entry = [&](std::int64_t i, std::int64_t j, bool transposed) {
    std::uint64_t sum = 0;
    for (std::int64_t c = 0; c < s.k; ++c) {
      const T factor = transposed ? at[c * s.m + i] : a[i * s.k + c];
      sum += static_cast<std::uint64_t>(factor) * static_cast<std::uint64_t>(b[c * s.n + j]);
    }
    return static_cast<T>(sum);
  };
  for (const bool transposed : {false, true}) {
    for (std::int64_t i = 0; i < s.m * s.n; ++i) expected[i] = entry(i / s.n, i % s.n, transposed);
    if (transposed) {
      p.matmul_transposed(at.data(), s.m, b.data(), s.n, s.k, s.m, s.n, y.data(), s.n, false,
                          nullptr);
    } else {
      Scratch form = packed(p, b.data(), s.k, s.n, s.n);
      p.matmul(a.data(), s.m, s.k, s.k, form.data(), s.n, y.data(), s.n, nullptr);
    }
    CHECK(same_bits(y, expected));
  }
}

TEST("integer products wrap around") {
  for_each_variant([](const KernelTable& table) {
    for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{3, 5, 7}, Sizes{20, 33, 41}, Sizes{2, 0, 3}}) {
      check_integers<std::int32_t>(table.product(DType::kInt32), s);
      check_integers<std::int64_t>(table.product(DType::kInt64), s);
    }
    CHECK(table.product.find(DType::kBool) == nullptr);
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
