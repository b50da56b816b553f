// Speed of the products on one thread: GFLOP/s, best of several runs, and the share of the peak.
//
//   SAMEGRAD_ISA=v3 bench_product [part of a name]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "tensor/array.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace samegrad {
namespace {

double seconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The best of many short runs of each, by turns: the machine may be busy with others, and its clock
// may change.
struct Best {
  double work = 1e30;
  double peak = 1e30;
};
Best best_seconds(double flops, const auto& work, const auto& peak) {
  const int calls = std::max(1, static_cast<int>(5e6 / flops));
  Best best;
  double spent = 0;
  for (int run = 0; run < 400 && (run < 5 || spent < 4); ++run) {
    best.peak = std::min(best.peak, seconds(peak));
    const double time = seconds([&] {
      for (int i = 0; i < calls; ++i) work();
    });
    best.work = std::min(best.work, time / calls);
    spent += time;
  }
  return best;
}

#if defined(__x86_64__)
// Twelve independent chains of fused multiply-adds in registers.
#define SAMEGRAD_DEFINE_PEAK(name, features, Register, set, fma)                    \
  __attribute__((target(features))) void name(int steps) {                          \
    Register sum[12];                                                               \
    for (Register & s : sum) s = set(0.0f);                                         \
    const Register a = set(1e-9f), b = set(0.5f);                                   \
    for (int i = 0; i < steps; ++i) {                                               \
      _Pragma("GCC unroll 12") for (Register & s : sum) s = fma(a, b, s);           \
      _Pragma("GCC unroll 12") for (Register & s : sum) asm volatile("" : "+x"(s)); \
    }                                                                               \
  }
SAMEGRAD_DEFINE_PEAK(fma_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps)
SAMEGRAD_DEFINE_PEAK(fma_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps)

// Runs the widest fused multiply-add there is; returns the operations done, 0 if there is none.
double run_peak() {
  constexpr int kSteps = 10000;
  if (__builtin_cpu_supports("x86-64-v4")) {
    fma_avx512(kSteps);
    return kSteps * 12.0 * 32;
  }
  if (!__builtin_cpu_supports("x86-64-v3")) return 0;
  fma_avx2(kSteps);
  return kSteps * 12.0 * 16;
}
#else
double run_peak() {
  return 0;
}
#endif

struct Bench {
  std::string filter;

  void report(const std::string& name, double flops, const auto& work) const {
    if (name.find(filter) == std::string::npos) return;
    double peak_flops = 0;
    const Best best = best_seconds(flops, work, [&] { peak_flops = run_peak(); });
    const double share = (flops / best.work) / (peak_flops / best.peak);
    std::printf("%-42s %7.1f GFLOP/s %9.2f us", name.c_str(), flops / best.work * 1e-9,
                best.work * 1e6);
    if (peak_flops > 0)
      std::printf(" %4.0f %% of %.0f", 100 * share, peak_flops / best.peak * 1e-9);
    std::printf("\n");
    std::fflush(stdout);
  }
  // Copies: millions of elements per second instead of operations.
  void report_copy(const std::string& name, std::int64_t elements, const auto& work) const {
    if (name.find(filter) == std::string::npos) return;
    const auto count = static_cast<double>(elements);
    const Best best = best_seconds(10 * count, work, [] {});
    std::printf("%-42s %7.1f Gelem/s %9.2f us\n", name.c_str(), count / best.work * 1e-9,
                best.work * 1e6);
  }
};

// Memory as the engine's is: on a cache line, and of large pages where it is large.
struct Floats {
  Buffer store;
  explicit Floats(std::int64_t n) : store(static_cast<std::size_t>(n) * sizeof(float)) {
    std::fill_n(data(), n, 0.5f);
  }
  float* data() { return reinterpret_cast<float*>(store.data()); }
};
Floats bytes(std::size_t count) {
  return Floats(static_cast<std::int64_t>(count / 4 + 1));
}

void bench_matmul(const Bench& bench, const ProductKernels& p, std::int64_t m, std::int64_t k,
                  std::int64_t n) {
  Floats a(m * k), b(k * n), y(m * n), bias(n), form = bytes(p.packed_bytes(k, n));
  p.pack(b.data(), k, n, n, false, form.data());
  const Epilogue epilogue{bias.data(), Activation::kRelu};
  const std::string size = std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n);
  const double flops = 2.0 * static_cast<double>(m * k * n);
  bench.report("matmul " + size, flops,
               [&] { p.matmul(a.data(), m, k, k, form.data(), n, y.data(), n, &epilogue); });
}

void bench_transposed(const Bench& bench, const ProductKernels& p, std::int64_t rows,
                      std::int64_t m, std::int64_t n, std::int64_t lda) {
  Floats a(rows * lda), b(rows * n), y(m * n);
  const std::string size = std::to_string(m) + "x" + std::to_string(rows) + "x" +
                           std::to_string(n) + " lda " + std::to_string(lda);
  std::vector<std::byte> workspace(p.transposed_workspace_bytes(rows, m, n));
  for (void* const some : {static_cast<void*>(nullptr), static_cast<void*>(workspace.data())}) {
    bench.report("matmul_transposed " + size + (some ? " copied" : ""),
                 2.0 * static_cast<double>(rows * m * n), [&] {
                   p.matmul_transposed(a.data(), lda, b.data(), n, rows, m, n, y.data(), n, false,
                                       some);
                 });
  }
}

// The weight gradient of a dense layer, in blocks as the engine cuts them, of operands that are
// packed once.
void bench_tree(const Bench& bench, const ProductKernels& p, std::int64_t examples, std::int64_t m,
                std::int64_t n) {
  const std::int64_t rows = std::min<std::int64_t>(m, 120),
                     columns = std::min<std::int64_t>(n, 1024);
  Floats a(examples * m), b(examples * n), y(m * n);
  Floats left = bytes(p.tree_packed_bytes(examples, m, false));
  Floats right = bytes(p.tree_packed_bytes(examples, n, true));
  Floats scratch = bytes(p.matmul_tree_scratch_bytes(examples));
  const std::string size =
      std::to_string(m) + "x" + std::to_string(examples) + "x" + std::to_string(n);
  bench.report("matmul_tree " + size, 2.0 * static_cast<double>(examples * m * n), [&] {
    p.tree_pack(a.data(), m, examples, m, false, left.data());
    p.tree_pack(b.data(), n, examples, n, true, right.data());
    for (std::int64_t i = 0; i < m; i += rows) {
      for (std::int64_t j = 0; j < n; j += columns) {
        p.matmul_tree({left.data() + i * examples, right.data() + j * examples, examples, 0,
                       examples, 1, std::min(rows, m - i), std::min(columns, n - j)},
                      y.data() + i * n + j, n, scratch.data());
      }
    }
  });
}

void bench_pack(const Bench& bench, const ProductKernels& p, std::int64_t k, std::int64_t n,
                bool transposed) {
  Floats b(k * n), form = bytes(p.packed_bytes(k, n));
  const std::string size = std::to_string(k) + "x" + std::to_string(n);
  bench.report_copy((transposed ? "pack transposed " : "pack ") + size, k * n,
                    [&] { p.pack(b.data(), k, n, transposed ? k : n, transposed, form.data()); });
}

// Rows of 64 replicas.
void bench_wide(const Bench& bench, const ProductKernels& p, std::int64_t m, std::int64_t k,
                std::int64_t n, bool transposed) {
  Floats a(m * k), b(k * n), y(m * n), scratch = bytes(p.matmul_grouped_scratch_bytes(k, n));
  std::vector<RowPiece> pieces;
  for (std::int64_t row = 0; row < m; row += m / 64) {
    pieces.push_back({a.data() + row * k, y.data() + row * n, m / 64});
  }
  const std::string size = std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n);
  bench.report((transposed ? "matmul_wide transposed " : "matmul_wide ") + size,
               2.0 * static_cast<double>(m * k * n), [&] {
                 p.matmul_grouped({pieces, k, n, b.data(), transposed, 0, n, nullptr,
                                   scratch.data(), k * n > 4 << 20});
               });
}

void bench_conv2d(const Bench& bench, const ProductKernels& p, const std::string& name,
                  const WindowGeometry& g) {
  const std::int64_t weights = g.patch_size() * g.out_channels;
  Floats x(g.in_size()), filter(weights), y(g.out_size()), bias(g.out_channels);
  Floats form = bytes(p.conv2d_packed_bytes(g));
  Floats back = bytes(p.conv2d_input_grad_packed_bytes(g));
  Floats scratch = bytes(std::max({p.conv2d_scratch_bytes(g), p.conv2d_input_grad_scratch_bytes(g),
                                   p.conv2d_filter_grad_scratch_bytes(g, whole_filter(g))}));
  const Epilogue epilogue{bias.data(), Activation::kRelu};
  const double flops = 2.0 * static_cast<double>(g.out_pixels() * weights);
  p.conv2d_pack(g, filter.data(), 0, g.group_out(), form.data());
  p.conv2d_input_grad_pack(g, filter.data(), 0, g.group_in(), back.data());
  bench.report(name + " forward", flops,
               [&] { p.conv2d(g, x.data(), form.data(), y.data(), &epilogue, scratch.data()); });
  bench.report(name + " input grad", flops,
               [&] { p.conv2d_input_grad(g, y.data(), back.data(), x.data(), scratch.data()); });
  bench.report(name + " filter grad", flops, [&] {
    p.conv2d_filter_grad(g, x.data(), y.data(), whole_filter(g), filter.data(), true,
                         scratch.data());
  });
  bench.report_copy(name + " input grad pack", weights, [&] {
    p.conv2d_input_grad_pack(g, filter.data(), 0, g.group_in(), back.data());
  });
}

void run_products(const Bench& bench, const ProductKernels& p) {
  for (std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 16, 64, 512}) bench_matmul(bench, p, m, 1600, 64);
  for (std::int64_t m : {4, 64, 512}) bench_matmul(bench, p, m, 64, 1600);
  for (std::int64_t m : {4, 64}) bench_matmul(bench, p, m, 64, 10);
  bench_matmul(bench, p, 512, 512, 512);
  for (std::int64_t rows : {4, 64}) bench_transposed(bench, p, rows, 64, 64, 1600);
  for (std::int64_t rows : {4, 64, 512}) bench_transposed(bench, p, rows, 1600, 64, 1600);
  bench_transposed(bench, p, 4, 64, 10, 64);
  bench_transposed(bench, p, 512, 512, 512, 512);
  bench_transposed(bench, p, 1024, 512, 2048, 512);
  bench_transposed(bench, p, 24, 2048, 64, 4096);
  for (std::int64_t examples : {128, 256}) bench_tree(bench, p, examples, 4096, 4096);
  bench_tree(bench, p, 32, 1024, 1024);
  for (std::int64_t m : {784, 1024}) bench_tree(bench, p, 64, m, 1024);
  for (std::int64_t m : {784, 2048}) bench_tree(bench, p, 256, m, 2048);
  bench_tree(bench, p, 64, 64, 10);
  bench_pack(bench, p, 1600, 64, false);
  bench_pack(bench, p, 64, 1600, true);
  for (const bool transposed : {false, true}) {
    for (std::int64_t k : {384, 4096}) bench_pack(bench, p, k, 4096, transposed);
    for (std::int64_t m : {64, 256, 2048}) bench_wide(bench, p, m, 4096, 4096, transposed);
    for (std::int64_t k : {784, 1024}) bench_wide(bench, p, 64, k, 1024, transposed);
    for (std::int64_t k : {784, 2048}) bench_wide(bench, p, 256, k, 2048, transposed);
  }
}

void run_convolutions(const Bench& bench, const ProductKernels& p) {
  bench_conv2d(bench, p, "conv 13x13x32 3x3 64", {13, 13, 32, 11, 11, 64, 3, 3, 1, 1, 0, 0});
  for (const std::int64_t out : {32, 64}) {
    const std::string to = " " + std::to_string(out);
    bench_conv2d(bench, p, "conv 28x28x1 3x3" + to, {28, 28, 1, 26, 26, out, 3, 3, 1, 1, 0, 0});
    bench_conv2d(bench, p, "conv 28x28x1 3x3 same" + to,
                 {28, 28, 1, 28, 28, out, 3, 3, 1, 1, 1, 1});
    bench_conv2d(bench, p, "conv 28x28x1 5x5" + to, {28, 28, 1, 24, 24, out, 5, 5, 1, 1, 0, 0});
    bench_conv2d(bench, p, "conv 28x28x1 5x5 same" + to,
                 {28, 28, 1, 28, 28, out, 5, 5, 1, 1, 2, 2});
    bench_conv2d(bench, p, "conv 28x28x1 3x3/2" + to, {28, 28, 1, 13, 13, out, 3, 3, 2, 2, 0, 0});
    bench_conv2d(bench, p, "conv 28x28x1 5x5/2" + to, {28, 28, 1, 12, 12, out, 5, 5, 2, 2, 0, 0});
    bench_conv2d(bench, p, "conv 28x28x1 5x5/2 same" + to,
                 {28, 28, 1, 14, 14, out, 5, 5, 2, 2, 1, 1});
  }
  bench_conv2d(bench, p, "conv 14x14x64 5x5/2 same 128", {14, 14, 64, 7, 7, 128, 5, 5, 2, 2, 1, 1});
  bench_conv2d(bench, p, "conv 14x14x64 3x3 same 64", {14, 14, 64, 14, 14, 64, 3, 3, 1, 1, 1, 1});
  bench_conv2d(bench, p, "conv 14x14x64 3x3 same 64 dilated",
               {14, 14, 64, 14, 14, 64, 3, 3, 1, 1, 2, 2, 2, 2});
  bench_conv2d(bench, p, "conv 14x14x64 3x3 same 64, 4 groups",
               {14, 14, 64, 14, 14, 64, 3, 3, 1, 1, 1, 1, 1, 1, 4});
  bench_conv2d(bench, p, "depthwise 56x56x128 3x3 same",
               {56, 56, 128, 56, 56, 128, 3, 3, 1, 1, 1, 1, 1, 1, 128});
  bench_conv2d(bench, p, "depthwise 14x14x512 3x3 same",
               {14, 14, 512, 14, 14, 512, 3, 3, 1, 1, 1, 1, 1, 1, 512});
  bench_conv2d(bench, p, "depthwise 28x28x17 3x3 same, 2 each",
               {28, 28, 17, 28, 28, 34, 3, 3, 1, 1, 1, 1, 1, 1, 17});
  bench_conv2d(bench, p, "volume 8x14x14x32 3x3x3 same 32",
               {14, 14, 32, 14, 14, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 8, 8, 3, 1, 1, 1});
}

}  // namespace
}  // namespace samegrad

int main(int argc, char** argv) {
  const samegrad::KernelTable& table = samegrad::kernels();
  std::printf("%s, float32, one thread; share of the peak of fused multiply-adds\n", table.isa);
  const samegrad::Bench bench{argc > 1 ? argv[1] : ""};
  samegrad::run_products(bench, table.product(samegrad::DType::kFloat32));
  samegrad::run_convolutions(bench, table.product(samegrad::DType::kFloat32));
}
