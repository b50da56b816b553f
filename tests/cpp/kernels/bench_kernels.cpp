// Times of the kernels on the sizes training steps have: nanoseconds per call, best of many.
//
// Usage: bench_kernels [filter]; SAMEGRAD_ISA picks the variant.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/elementwise_fn.h"

namespace samegrad {
namespace {

std::string filter;

void time(const std::string& name, double elements, const std::function<void()>& run) {
  if (name.find(filter) == std::string::npos) return;
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  int calls = 1;
  for (int round = 0; round < 60; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) run();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    best = std::min(best, ns / calls);
    if (ns < 2e5) calls = calls * 2;
  }
  std::printf("%-34s %10.1f ns %8.3f ns/element\n", name.c_str(), best, best / elements);
}

std::vector<float> ramp(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = 0.1f + 0.001f * static_cast<float>(i * 7919 % 1000);
  return x;
}

void time_elementwise(const KernelTable& table) {
  std::vector<float> a = ramp(4096), b = ramp(4096), y(4096);
  std::vector<double> ad(a.begin(), a.end()), yd(4096);
  for (const std::int64_t n : {3, 8, 4096}) {
    const double count = static_cast<double>(n);
    const std::string size = " " + std::to_string(n);
#define SAMEGRAD_UNARY(name, ...)                                                         \
  if (const UnaryKernel k = table.unary(UnaryFn::k_##name, DType::kFloat32)) {            \
    time(#name + size, count, [&] { k(a.data(), y.data(), n); });                         \
    const UnaryKernel d = table.unary(UnaryFn::k_##name, DType::kFloat64);                \
    if (n > 8) time(#name " float64" + size, count, [&] { d(ad.data(), yd.data(), n); }); \
  }
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY
#define SAMEGRAD_BINARY(name, ...)                                                \
  if (const BinaryKernel k = table.binary(BinaryFn::k_##name, DType::kFloat32)) { \
    time(#name + size, count, [&] { k(a.data(), b.data(), y.data(), n, 1, 1); }); \
  }
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
  }
}

void time_reductions(const KernelTable& table) {
  const std::vector<float> x = ramp(676 * 128);
  std::vector<float> y(676 * 128), p(676 * 128);
  std::vector<std::int64_t> labels(676, 3);
  const RowReduceKernel rows = table.row_reduce(ReduceFn::kSum, DType::kFloat32);
  const ColumnReduceKernel columns = table.column_reduce(ReduceFn::kSum, DType::kFloat32);
  const ArgReduceKernel arg_max = table.arg_max(DType::kFloat32);
  const SoftmaxKernels& softmax = table.softmax(DType::kFloat32);
  time("row_sum 64x10", 640, [&] { rows(x.data(), y.data(), 64, 10); });
  time("row_sum 64x128", 8192, [&] { rows(x.data(), y.data(), 64, 128); });
  time("column_sum 676x32", 21632, [&] { columns(x.data(), y.data(), 676, 32, 32, false); });
  time("column_sum 64x10", 640, [&] { columns(x.data(), y.data(), 64, 10, 10, false); });
  time("column_sum 4x128", 512, [&] { columns(x.data(), y.data(), 4, 128, 128, false); });
  time("arg_max 64x10", 640, [&] { arg_max(x.data(), labels.data(), 64, 10); });
  time("arg_max 1x1000", 1000, [&] { arg_max(x.data(), labels.data(), 1, 1000); });
  std::fill(labels.begin(), labels.end(), 3);
  time("softmax 64x10", 640, [&] { softmax.softmax(x.data(), y.data(), 64, 10); });
  time("softmax 160x40", 6400, [&] { softmax.softmax(x.data(), y.data(), 160, 40); });
  time("softmax 64x128", 8192, [&] { softmax.softmax(x.data(), y.data(), 64, 128); });
  time("softmax 8x8192", 65536, [&] { softmax.softmax(x.data(), y.data(), 8, 8192); });
  time("log_softmax 64x10", 640, [&] { softmax.log_softmax(x.data(), y.data(), 64, 10); });
  time("cross_entropy 64x10", 640,
       [&] { softmax.sparse_cross_entropy(x.data(), labels.data(), y.data(), p.data(), 64, 10); });
}

void time_pools(const KernelTable& table) {
  const WindowGeometry g = {.in_height = 26,
                            .in_width = 26,
                            .in_channels = 32,
                            .out_height = 13,
                            .out_width = 13,
                            .out_channels = 32,
                            .window_height = 2,
                            .window_width = 2,
                            .stride_height = 2,
                            .stride_width = 2,
                            .pad_top = 0,
                            .pad_left = 0};
  const std::vector<float> x = ramp(static_cast<std::size_t>(g.in_size()));
  std::vector<float> y(x.size()), dx(x.size());
  std::vector<std::uint8_t> index(y.size());
  const PoolKernels& pool = table.pool(DType::kFloat32);
  const double n = static_cast<double>(g.in_size());
  time("max_pool 26x26x32", n, [&] { pool.max_pool(g, x.data(), y.data(), index.data()); });
  time("max_pool_grad 26x26x32", n,
       [&] { pool.max_pool_grad(g, y.data(), index.data(), dx.data()); });
  time("avg_pool 26x26x32", n, [&] { pool.avg_pool(g, x.data(), y.data()); });
  time("avg_pool_grad 26x26x32", n, [&] { pool.avg_pool_grad(g, y.data(), dx.data()); });
}

void time_random(const KernelTable& table) {
  std::vector<float> y(8192);
  const RandomKernels& random = table.random(DType::kFloat32);
  time("uniform 64x128", 8192, [&] { random.uniform({1, 2}, 0, 64, 128, y.data()); });
  time("normal 64x128", 8192, [&] { random.normal({1, 2}, 0, 64, 128, y.data()); });
  time("truncated_normal 64x128", 8192, [&] {
    random.truncated_normal({1, 2}, 0, 64, 128, y.data());
  });
  time("uniform 1000x1", 1000, [&] { random.uniform({1, 2}, 0, 1000, 1, y.data()); });
}

void time_others(const KernelTable& table) {
  std::vector<float> a = ramp(4096), b = ramp(4096), y(4096);
  std::vector<std::uint8_t> c(4096, 1);
  const SelectKernel select = table.select(DType::kFloat32);
  time("select 4096", 4096, [&] { select(c.data(), a.data(), b.data(), y.data(), 4096, 1, 1, 1); });
  for (const DType to : {DType::kInt32, DType::kUInt8, DType::kFloat64, DType::kBool}) {
    std::vector<double> wide(4096);
    const CastKernel cast = table.cast(DType::kFloat32, to);
    time(std::string("cast to ") + name_of(to), 4096, [&] { cast(a.data(), wide.data(), 4096); });
  }
  const CastKernel from_bytes = table.cast(DType::kUInt8, DType::kFloat32);
  time("cast uint8 to float32", 4096, [&] { from_bytes(c.data(), y.data(), 4096); });
}

}  // namespace
}  // namespace samegrad

int main(int argc, char** argv) {
  if (argc > 1) samegrad::filter = argv[1];
  const samegrad::KernelTable& table = samegrad::kernels();
  std::printf("%s\n", table.isa);
  samegrad::time_elementwise(table);
  samegrad::time_reductions(table);
  samegrad::time_pools(table);
  samegrad::time_random(table);
  samegrad::time_others(table);
}
