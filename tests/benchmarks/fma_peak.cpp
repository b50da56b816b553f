// Measures how many float32 operations per second this machine can do in fused multiply-adds.
//
//   g++ -std=c++20 -O3 -march=native -pthread fma_peak.cpp -o fma_peak
//   ./fma_peak THREADS [SECONDS]
//
// Prints one JSON line: the mean over SECONDS and the best of its blocks, in GFLOP/s.

#include <cstdio>

#include "meter.h"

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
using Vector = float __attribute__((vector_size(kVectorBytes)));

// Two FMA units with a latency of 4 to 5 cycles need up to 10 sums in flight; 12 and the two
// operands still fit into the 16 vector registers of AVX2.
constexpr int kSums = 12;
constexpr long kIterations = 1'000'000;
constexpr double kFlopPerBlock =
    2.0 * kSums * kIterations * (kVectorBytes / static_cast<double>(sizeof(float)));

// Read at run time, so that the compiler cannot work out the sums beforehand. The factor is
// below one: the sums converge and never become infinite or denormal.
volatile float factor_source = 0.999F;
volatile float addend_source = 0.5F;
volatile float sink = 0.0F;

void run_block() {
  const Vector factor = Vector{} + factor_source;
  const Vector addend = Vector{} + addend_source;
  Vector sums[kSums];
  for (int k = 0; k < kSums; ++k) sums[k] = Vector{} + static_cast<float>(k);
  for (long i = 0; i < kIterations; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kSums; ++k) sums[k] = sums[k] * factor + addend;
  }
  Vector total{};
  for (const Vector& sum : sums) total += sum;
  sink = total[0];
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  if (threads < 1 || seconds <= 0.0) {
    std::fprintf(stderr, "usage: fma_peak THREADS [SECONDS], both positive\n");
    return 2;
  }
  const Rate peak = measure(threads, seconds, kFlopPerBlock * threads, [](int) { run_block(); });
  std::printf("{\"threads\": %d, \"vector_bytes\": %d, \"gflops\": %.1f, \"best_gflops\": %.1f}\n",
              threads, kVectorBytes, peak.mean, peak.best);
}
