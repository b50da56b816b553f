#include "runtime/rates.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>

#include "base/machine.h"
#include "base/synchronized.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "runtime/executor.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

constexpr int kRuns = 4;
constexpr std::int64_t kSide = 512;                                // of the matrices
constexpr std::int64_t kStreamedElements = std::int64_t(1) << 24;  // of an array: 64 MiB

template <class F>
double least_seconds(const F& f) {
  double least = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return std::max(least, 1e-9);
}

// Measures the engine's own product, which is the most that it can reach.
double product_flops(DType dtype) {
  const OpDef& op = OpRegistry::instance().get("matmul");
  const ValueType type{dtype, {kSide, kSide}, {}};
  Array square(dtype, type.shape);
  std::memset(square.raw(), 0, square.bytes());
  Node node;
  node.op = &op;
  node.attrs = MatmulAttrs{};
  node.inputs = {Value(0), Value(1)};
  node.outputs = {Value(2)};
  node.locality = Locality::kFullBatch;
  const ReplicaContext replica_context;
  const double seconds = least_seconds([&] {
    run_op(node, {type, type}, {type}, {square, square}, replica_context);
  });
  return 2.0 * double(kSide * kSide * kSide) / seconds;
}

// Bytes per second that all threads copy within their caches: those read and those written.
double cached_bytes(std::int64_t bytes, int rounds) {
  const ParallelFor& loops = parallel_loops();
  const std::int64_t threads = loops.threads();
  Array from(DType::kUInt8, {threads * bytes}), to(DType::kUInt8, {threads * bytes});
  std::memset(from.raw(), 1, from.bytes());
  std::memset(to.raw(), 1, to.bytes());
  const double seconds = least_seconds([&] {
    loops.run(threads, [&](std::int64_t t) {
      for (int i = 0; i < rounds; ++i) {
        std::memcpy(to.raw() + t * bytes, from.raw() + t * bytes, std::size_t(bytes));
      }
    });
  });
  return 2.0 * double(threads * bytes * rounds) / seconds;
}

// Arrays beyond all caches.
std::array<Array, 3> streamed_arrays() {
  std::array<Array, 3> arrays;
  for (Array& array : arrays) {
    array = Array(DType::kFloat32, {kStreamedElements});
    std::memset(array.raw(), 0, array.bytes());
  }
  return arrays;
}

// Bytes per second of the triad of STREAM (McCalpin, 1995): two arrays are read and one is written.
// A copy by the system would pass the caches by.
double streamed_bytes(std::array<Array, 3>& arrays) {
  const ParallelFor& loops = parallel_loops();
  const std::int64_t pieces = std::int64_t{16} * loops.threads();
  const std::int64_t elements = kStreamedElements;
  float* x = arrays[0].data<float>();
  const float* y = arrays[1].data<float>();
  const float* z = arrays[2].data<float>();
  const double seconds = least_seconds([&] {
    loops.run(pieces, [&](std::int64_t p) {
      for (auto i = elements * p / pieces; i < elements * (p + 1) / pieces; ++i) {
        x[i] = y[i] + 0.5F * z[i];
      }
    });
  });
  return 3.0 * double(elements) * sizeof(float) / seconds;
}

// Seconds of a load that waits for memory: a chase through lines in an order without a pattern.
double line_seconds(Array& array) {
  constexpr std::int64_t kLine = 64;  // bytes
  constexpr std::int64_t kHops = 4096;
  const std::int64_t lines = std::int64_t(array.bytes()) / kLine;  // 2^n: the order has them all
  for (std::int64_t i = 0; i < lines; ++i) {
    const std::int64_t next = (1664525 * i + 1013904223) % lines;
    std::memcpy(array.raw() + i * kLine, &next, sizeof next);
  }
  std::atomic<std::int64_t> at{0};
  const double seconds = least_seconds([&] {
    std::int64_t line = at;
    for (std::int64_t i = 0; i < kHops; ++i) {
      std::memcpy(&line, array.raw() + line * kLine, sizeof line);
    }
    at = line;
  });
  return seconds / kHops;
}

// Seconds until all threads are at work, after the caller was alone for as long as a small step.
double fork_seconds() {
  using Clock = std::chrono::steady_clock;
  const auto wait = [](auto seconds, const auto& done) {
    for (const auto start = Clock::now(); !done() && Clock::now() - start < seconds;) {
    }
  };
  const ParallelFor& loops = parallel_loops();
  const auto alone = std::chrono::microseconds(50);
  return least_seconds([&] {
           wait(alone, [] { return false; });
           std::atomic<int> here{0};
           loops.run(loops.threads(), [&](std::int64_t) {
             ++here;
             wait(std::chrono::milliseconds(1), [&] { return here == loops.threads(); });
           });
         }) -
         std::chrono::duration<double>(alone).count();
}

Rates measure() {
  Rates rates;
  rates.threads = parallel_loops().threads();
  rates.flops = product_flops(DType::kFloat32);
  rates.double_flops = product_flops(DType::kFloat64);
  rates.cache_bytes = cached_bytes(machine().l2 / 4, 64);
  std::array<Array, 3> arrays = streamed_arrays();
  rates.memory_bytes = streamed_bytes(arrays);
  rates.line_seconds = line_seconds(arrays[0]);
  rates.fork_seconds = fork_seconds();
  return rates;
}

}  // namespace

Rates measured_rates() {
  static auto* known = new Synchronized<std::map<int, Rates>>;  // by threads; never destroyed
  const int threads = parallel_loops().threads();
  {
    const auto all = known->lock();
    if (const auto at = all->find(threads); at != all->end()) return at->second;
  }
  const Rates rates = measure();
  (*known->lock())[threads] = rates;
  return rates;
}

}  // namespace samegrad
